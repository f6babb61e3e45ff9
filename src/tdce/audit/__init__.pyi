from tdce.audit.chain import Chain as Chain
from tdce.audit.chain import write_evidence as write_evidence
from tdce.audit.findings import Findings as Findings
from tdce.audit.keys import make_keys as make_keys
from tdce.audit.record import BLOCK_PREFIX as BLOCK_PREFIX
from tdce.audit.record import block_lines as block_lines
from tdce.audit.record import relabel as relabel
from tdce.audit.verification import verify as verify
