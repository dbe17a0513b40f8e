"""Model files: one safetensors file with arrays and JSON. No pickle is written or read.

arrays     components, variances, mean, players, and the stream to continue from
           for genotypes: ids of the individuals and positions of the SNPs, as lines of text in UTF-8
eigengame  JSON: format, version, parameters, certificate, outcome, provenance, features, alleles, layers

Entries that a later version adds are optional, so that every version reads the files of all others with its format.

`writer.py` writes a file, `reader.py` reads it, and `facts.py` checks what was read. `layout.py` has what both use.
"""

from eigengame.model_file.layout import FORMAT as FORMAT
from eigengame.model_file.layout import ModelFileError as ModelFileError
from eigengame.model_file.reader import load as load
from eigengame.model_file.reader import read as read
from eigengame.model_file.reader import rebuild as rebuild
from eigengame.model_file.writer import contents as contents
from eigengame.model_file.writer import provenance as provenance
from eigengame.model_file.writer import save as save
