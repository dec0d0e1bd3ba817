"""The live world: transforms that come in from outside, versions of the scene that they make, and the closed loop.

:class:`Buffer` has the interface of ROS's ``tf2_ros.Buffer``, and holds a :class:`~tmkit.graph.SceneGraph`. Messages
are shaped like those of ``geometry_msgs``; ROS's own messages, times and durations are taken as well. ROS is not
needed. :func:`execute_closed_loop` executes a plan and looks after each step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.world.bags import (
        BagInfo as BagInfo,
        BagRecorder as BagRecorder,
        BagReplay as BagReplay,
        BagTopic as BagTopic,
        play_bag as play_bag,
        read_bag_info as read_bag_info,
    )
    from tmkit.world.block_runner import (
        After as After,
        BlockRunner as BlockRunner,
        Every as Every,
        OnChange as OnChange,
        check_chain as check_chain,
    )
    from tmkit.world.blocks import FunctionBlock as FunctionBlock, OutputFrame as OutputFrame, run_block as run_block
    from tmkit.world.buffer import Buffer as Buffer
    from tmkit.world.closed_loop import (
        ClosedLoopEvent as ClosedLoopEvent,
        ClosedLoopResult as ClosedLoopResult,
        ClosedLoopStatus as ClosedLoopStatus,
        Sensor as Sensor,
        execute_closed_loop as execute_closed_loop,
    )
    from tmkit.world.live_scene import LiveScene as LiveScene, VersionRecorder as VersionRecorder
    from tmkit.world.messages import (
        ConnectivityException as ConnectivityException,
        ExtrapolationException as ExtrapolationException,
        Header as Header,
        InvalidArgumentException as InvalidArgumentException,
        JointState as JointState,
        LookupException as LookupException,
        Quaternion as Quaternion,
        Time as Time,
        TimeoutException as TimeoutException,
        Transform as Transform,
        TransformException as TransformException,
        TransformStamped as TransformStamped,
        Vector3 as Vector3,
    )
    from tmkit.world.perception import PlaneSegmentation as PlaneSegmentation, TableRecognition as TableRecognition
    from tmkit.world.service.access import ServiceLimits as ServiceLimits, read_tokens as read_tokens
    from tmkit.world.service.client import (
        Client as Client,
        Replica as Replica,
        WorldChange as WorldChange,
        connect as connect,
    )
    from tmkit.world.service.edits import WorldEdits as WorldEdits
    from tmkit.world.service.messages import ServiceStatus as ServiceStatus
    from tmkit.world.service.recording import RecordingTransport as RecordingTransport
    from tmkit.world.service.server import WorldServer as WorldServer
    from tmkit.world.service.transports import (
        InProcessTransport as InProcessTransport,
        Transport as Transport,
        load_transport as load_transport,
    )
    from tmkit.world.service.zenoh_transport import ZenohTransport as ZenohTransport
    from tmkit.world.tracking import (
        ObjectTracker as ObjectTracker,
        OutdatedRemover as OutdatedRemover,
        Predictor as Predictor,
        StatePublisher as StatePublisher,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)
