import os
import pickle

import numpy as np
import pytest
from scipy import sparse

from eigengame import EigenGamePCA, SourceError, as_source
from tests.sources.same_rows import assert_same_rows

ROWS = np.random.default_rng(0).normal(size=(57, 5))


@pytest.fixture
def files(tmp_path):
    """Three files of 20, 1 and 36 rows; the last one is text."""
    parts = np.split(ROWS, [20, 21])
    np.save(tmp_path / "a.npy", parts[0])
    np.save(tmp_path / "b.npy", parts[1])
    np.savetxt(tmp_path / "c.csv", parts[2], delimiter=",", fmt="%.18g")
    return [tmp_path / "a.npy", str(tmp_path / "b.npy"), tmp_path / "c.csv"]


def test_rows_of_several_files_follow_one_another_from_any_row_on(files):
    assert_same_rows(as_source(files), ROWS)


def test_a_list_of_files_is_fitted_as_one(files):
    one, other = (EigenGamePCA(2, random_state=0).fit(x) for x in (files, ROWS))
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-12)
    assert one.n_samples_seen_ == 57


def test_incompatible_files_are_reported(files, tmp_path):
    np.save(tmp_path / "narrow.npy", ROWS[:, :3])
    with pytest.raises(SourceError, match=r"narrow.npy has 3 dense features, but .*a.npy has 5"):
        as_source([files[0], tmp_path / "narrow.npy"])
    sparse.save_npz(tmp_path / "sparse.npz", sparse.csr_array(ROWS))
    with pytest.raises(SourceError, match=r"5 sparse features, but .*a.npy has 5 dense features"):
        as_source([files[0], tmp_path / "sparse.npz"])
    with pytest.raises(SourceError, match="does not exist"):
        as_source([files[0], tmp_path / "absent.npy"])


def test_a_change_in_any_file_changes_the_fingerprint(files):
    before = as_source(files).fingerprint()
    assert as_source(files).fingerprint() == before
    np.save(files[1], ROWS[:2])
    assert as_source(files).fingerprint() != before


def test_a_source_of_a_path_is_pickled_as_its_path(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sent = pickle.dumps(as_source("a.npy"))
    assert len(sent) < 500 < ROWS.nbytes
    monkeypatch.chdir(os.sep)
    assert_same_rows(pickle.loads(sent), ROWS[:20])


def test_files_whose_columns_have_another_order_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,4\n")
    (tmp_path / "b.csv").write_text("y,x\n1,2\n3,4\n")
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    with pytest.raises(SourceError, match=r"b.csv: feature 0 is 'y', but 'x' in .*a.csv"):
        as_source(paths)
    rows = np.vstack([block.values for block in as_source(paths, columns=["x"]).blocks(0, 9)])
    np.testing.assert_array_equal(rows, [[1], [3], [2], [4]])
