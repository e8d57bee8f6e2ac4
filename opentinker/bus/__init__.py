"""Channels between the processes of a job: a coordinator that binds and workers that connect.

Registry kind ``bus``: an object with a ``coordinator`` and a ``worker`` class.
"""
