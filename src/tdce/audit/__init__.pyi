from tdce.audit.chain import Chain as Chain
from tdce.audit.chain import write_evidence as write_evidence
from tdce.audit.findings import Findings as Findings
from tdce.audit.keys import make as make
from tdce.audit.record import ABOUT as ABOUT
from tdce.audit.record import block_lines as block_lines
from tdce.audit.record import relabelled as relabelled
from tdce.audit.verification import verify as verify
