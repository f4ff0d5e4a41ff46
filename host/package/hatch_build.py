"""A wheel with files of one machine, for every Python."""
from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class OfMachine(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{self.config['platform']}"
