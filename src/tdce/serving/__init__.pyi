from tdce.serving.notebook import Studio as Studio
from tdce.serving.notebook import open_studio as open_studio
from tdce.serving.server import serve as serve
from tdce.serving.settings import ServerSettings as ServerSettings
