"""Models and reports contain the name of the data, not its folders, unless these are requested."""

import json

import h5py
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from eigengame import EigenGamePCA, as_source, prepare, shuffled, write_report

X = np.random.default_rng(0).standard_normal((64, 4))


def npy(folder):
    np.save(folder / "x.npy", X)
    return folder / "x.npy"


def several(folder):
    return [npy(folder), npy(folder)]


def csv(folder):
    pd.DataFrame(X, columns=list("abcd")).to_csv(folder / "x.csv", index=False)
    return folder / "x.csv"


def parquet(folder):
    pd.DataFrame(X, columns=list("abcd")).to_parquet(folder / "x.parquet")
    return folder / "x.parquet"


def hdf5(folder):
    with h5py.File(folder / "x.h5", "w") as file:
        file["group/x"] = X
    return folder / "x.h5"


def prepared(folder):
    return prepare(shuffled(as_source(npy(folder)), 3), missing="mean")


def images(folder):
    (folder / "pictures").mkdir()
    for i in range(8):
        Image.fromarray((X[i : i + 2, :2] * 40 + 99).astype(np.uint8)).save(
            folder / "pictures" / f"{i}.png"
        )
    return f"{folder}/pictures/"


@pytest.mark.parametrize("make", [npy, several, csv, parquet, hdf5, prepared, images])
def test_models_and_reports_do_not_contain_the_folders_of_the_data(tmp_path, make):
    folder = tmp_path / "secret project"
    folder.mkdir()
    pca = EigenGamePCA(2, random_state=0).fit(make(folder))
    name = json.dumps(pca._source["name"])
    assert "secret project" in name
    plain = pca.save(tmp_path / "plain.safetensors").read_bytes()
    assert b"secret project" not in plain
    assert (b"pictures" if make is images else b"x.") in plain
    write_report(pca, tmp_path / "report.html")
    assert "secret project" not in (tmp_path / "report.html").read_text()
    again = EigenGamePCA.load(tmp_path / "plain.safetensors")
    write_report(again, tmp_path / "report.html")
    assert "secret project" not in (tmp_path / "report.html").read_text()
    full = pca.save(tmp_path / "full.safetensors", full_paths=True).read_bytes()
    assert b"secret project" in full


def test_folders_of_relative_paths_are_left_out(tmp_path, monkeypatch):
    (tmp_path / "secret project").mkdir()
    npy(tmp_path / "secret project")
    monkeypatch.chdir(tmp_path)
    pca = EigenGamePCA(2, random_state=0).fit("secret project/x.npy")
    assert b"secret project" not in pca.save("m.safetensors").read_bytes()
    monkeypatch.chdir("secret project")
    pca = EigenGamePCA(2, random_state=0).fit("x.npy")
    assert b"secret project" not in pca.save("m.safetensors").read_bytes()
