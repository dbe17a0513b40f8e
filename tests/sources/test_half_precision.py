"""How outputs of a network become rows in half precision."""

from eigengame.sources._half_precision import computed_as


def test_outputs_are_rounded_unless_all_of_them_have_the_dtype_of_the_rows():
    assert computed_as(["torch.bfloat16"], "bfloat16")
    assert not computed_as(["torch.bfloat16", "torch.float32"], "bfloat16")
    assert not computed_as(["float16"], "bfloat16")
