from tdce.batch.checkpoint import BlockRecord as BlockRecord
from tdce.batch.checkpoint import check_checkpoint as check_checkpoint
from tdce.batch.checkpoint import check_folder as check_folder
from tdce.batch.ray import explain_parquet as explain_parquet
from tdce.batch.run import EvidenceOptions as EvidenceOptions
from tdce.batch.run import RunOptions as RunOptions
from tdce.batch.run import explain_table as explain_table
