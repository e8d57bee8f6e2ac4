"""The learning core of OpenTinker: environments, policies, algorithms, bus and training. No ROS."""

__version__ = '0.1.0'
