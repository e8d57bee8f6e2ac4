"""Cooperating robot arms as one multi-agent environment, in ROS 2 and in simulation."""

from pkgutil import extend_path

# hand-written modules and the generated messages live in two folders of one package
__path__ = extend_path(__path__, __name__)
