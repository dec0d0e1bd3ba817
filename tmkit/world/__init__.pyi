"""The names that `tmkit.world` exports."""

from tmkit.world.bags import BagRecorder as BagRecorder, play_bag as play_bag
from tmkit.world.block_runner import (
    After as After,
    BlockRunner as BlockRunner,
    Every as Every,
    OnChange as OnChange,
)
from tmkit.world.blocks import (
    FunctionBlock as FunctionBlock,
    OutputFrame as OutputFrame,
    run_block as run_block,
)
from tmkit.world.buffer import Buffer as Buffer
from tmkit.world.closed_loop import execute_closed_loop as execute_closed_loop
from tmkit.world.lerobot.executor import LeRobotExecutor as LeRobotExecutor
from tmkit.world.lerobot.settings import (
    LeRobotSettings as LeRobotSettings,
    load_lerobot as load_lerobot,
)
from tmkit.world.live_scene import LiveScene as LiveScene
from tmkit.world.messages import (
    ConnectivityException as ConnectivityException,
    ExtrapolationException as ExtrapolationException,
    Header as Header,
    JointState as JointState,
    LookupException as LookupException,
    Quaternion as Quaternion,
    Time as Time,
    Transform as Transform,
    TransformException as TransformException,
    TransformStamped as TransformStamped,
    Vector3 as Vector3,
)
from tmkit.world.perception import (
    PlaneSegmentation as PlaneSegmentation,
    TableRecognition as TableRecognition,
)
from tmkit.world.ros2.controllers import (
    ControllerSettings as ControllerSettings,
    load_controllers as load_controllers,
)
from tmkit.world.ros2.executor import Ros2Executor as Ros2Executor
from tmkit.world.ros2.joint_states import JointStates as JointStates
from tmkit.world.ros2.planning_scene import PlanningSceneSource as PlanningSceneSource
from tmkit.world.ros2.sensors import RosSensorSettings as RosSensorSettings, TfSensor as TfSensor
from tmkit.world.ros2.vision import VisionSensor as VisionSensor
from tmkit.world.service.access import ServiceLimits as ServiceLimits
from tmkit.world.service.client import Client as Client, connect as connect
from tmkit.world.service.server import WorldServer as WorldServer
from tmkit.world.service.transports import InProcessTransport as InProcessTransport
from tmkit.world.tracking import (
    ObjectTracker as ObjectTracker,
    OutdatedRemover as OutdatedRemover,
    Predictor as Predictor,
    StatePublisher as StatePublisher,
)
