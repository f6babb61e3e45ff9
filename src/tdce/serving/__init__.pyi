from tdce.serving.server import serve as serve
from tdce.serving.settings import ServerSettings as ServerSettings
