"""Quality-of-service profiles, named by their use."""

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions

#: Lock-step traffic: one message is in flight, none may be lost.
STEP = QoSProfile(depth=10, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.RELIABLE)
#: Transitions wait here while the bridge is busy: two seconds at 500 steps/s.
STREAM = QoSProfile(
    depth=1000, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.RELIABLE
)
#: The newest value for whoever comes later.
LATCHED = QoSProfile(
    depth=1,
    history=HistoryPolicy.KEEP_LAST,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
#: One newest version a group, for up to 16 groups.
VERSIONS = QoSProfile(
    depth=16,
    history=HistoryPolicy.KEEP_LAST,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
OVERRIDABLE = QoSOverridingOptions.with_default_policies()
