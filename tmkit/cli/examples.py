"""Examples of use that the help of each command ends with."""

from __future__ import annotations

EXAMPLES = {
    "": ["tmkit demo", "tmkit list scenes", "tmkit new robot my_robot.urdf"],
    "demo": ["tmkit demo --out tower"],
    "plan": [
        "tmkit plan panda_table blocks3 --goal '(on a b)' -o plan.json",
        "tmkit plan panda_table blocks3 --goal-at 'a@table=0.1,0.2,0.03' --improve 20 --view",
        "tmkit plan my_cell.robray blocks3 --robot my_robot.toml --goal '(on a b)'",
    ],
    "task": ["tmkit task domain.pddl problem.pddl --planner optimal"],
    "check": ["tmkit check plan.json", "tmkit check plan.tmp --scene panda_table --scene blocks3 --robot panda"],
    "simulate": ["tmkit simulate plan.json --view", "tmkit simulate plan.json --record film.mp4 --picture end.png"],
    "export": [
        "tmkit export plan.json --format csv -o plan.csv",
        "tmkit export plan.json --format ros2 -o plan_bag",
        "tmkit export plan.json --format lerobot -o dataset",
    ],
    "batch": [
        "tmkit batch problems.toml -o results",
        "tmkit batch problems.toml -o results --scheduler tcp://10.0.0.1:8786",
    ],
    "dataset": [
        "tmkit dataset results -o data",
        "tmkit dataset results -o episodes --layout lerobot --pictures 160x120",
    ],
    "arena": [
        "tmkit arena hanoi ceiling -o results",
        "tmkit arena geometry -o results --planner tmkit --planner my_planner:plan --simulate",
    ],
    "view": [
        "tmkit view plan.json",
        "tmkit view panda_table blocks3 --domain blocks --robot panda",
        "tmkit view plan.json --html plan.html",
    ],
    "serve": [
        "tmkit serve panda_table blocks3 --log world.log",
        "tmkit serve --listen tcp/0.0.0.0:7447 --tokens tokens.txt --log world.log",
        "tmkit serve panda_table blocks3 --block \"tmkit.world:Predictor={name = 'soon', input_hook = 'table'}\"",
    ],
    "bag info": ["tmkit bag info run"],
    "bag record": ["tmkit bag record run --from tcp/127.0.0.1:7447"],
    "bag replay": ["tmkit bag replay run --into tcp/127.0.0.1:7447", "tmkit bag replay run panda_table -o scene.json"],
    "scene dump": ["tmkit scene dump panda_table blocks3"],
    "scene check": ["tmkit scene check my_cell.robray --watch"],
    "scene cache": ["tmkit scene cache --clear"],
    "scene compile": ["tmkit scene compile my_scene.rsg -o my_scene.py"],
    "scene convert": ["tmkit scene convert my_robot.urdf -o my_robot.json"],
    "store ls": ["tmkit store ls worlds"],
    "store log": ["tmkit store log worlds main"],
    "store show": ["tmkit store show worlds main"],
    "store put": ["tmkit store put worlds panda_table blocks3 -m 'three blocks'"],
    "store get": ["tmkit store get worlds main -o scene.json"],
    "store diff": ["tmkit store diff worlds main try"],
    "store merge": ["tmkit store merge worlds try --branch main"],
    "store gc": ["tmkit store gc worlds"],
    "object add": ["tmkit object add mug.obj --picture mug.png", "tmkit object add cup.stl --scale 0.001 --mass 0.3"],
    "robot check": [
        "tmkit robot check my_robot.urdf --picture reach.png",
        "tmkit robot check my_cell.robray --robot my_robot.toml --write-srdf my_robot.srdf",
    ],
    "list": ["tmkit list robots"],
    "new domain": ["tmkit new domain trays"],
    "new scene": ["tmkit new scene my_cell"],
    "new robot": [
        "tmkit new robot my_robot.urdf --view",
        "tmkit new robot ur10.urdf --hand parallel_gripper --out ur10.toml --yes",
        "tmkit new robot two_arms.urdf --tip left_wrist --ready 'shoulder=0.3,elbow=-1.2'",
    ],
    "lsp": ["tmkit lsp"],
    "completion": ["source <(tmkit completion bash)"],
}
"""Command lines by the path of the command below ``tmkit``."""
