"""A scene is a value: pick, look, undo, compare.

Every edit gives a new version and leaves the old one as it was. So a planner that tries something
keeps what it had, and going back is to go on with the other variable. README shows this file, with
its output.
"""

import tmkit as tk

scene = tk.SceneGraph()
scene = scene.add_frame("table", "world", pose=tk.Pose([0.5, 0.0, 0.4]), classes=["surface"])
scene = scene.add_frame("cup", "table", pose=tk.Pose([0.0, 0.0, 0.05]), classes=["movable"])
scene = scene.add_frame("arm", "world", joint=tk.Revolute([0, 0, 1], lower=-2.0, upper=2.0))
scene = scene.add_frame("hand", "arm", pose=tk.Pose([0.5, 0.0, 0.6]))
ahead, left = scene.configuration({"arm": 0.0}), scene.configuration({"arm": 1.5})

# pick: a new version, in which the cup is a child of the hand
held = scene.reparent("cup", "hand", q=ahead)
print(tk.graph.tree_text(held))  # print

put = held.reparent("cup", "world", q=left)  # one branch: turn the arm and release the cup there
# another branch: place it back
back = held.reparent("cup", "table", pose=tk.Pose([0.0, 0.0, 0.05]))
for name, version in {"scene": scene, "held": held, "put": put, "back": back}.items():
    x, y, z = version.pose("cup", relative_to="world", q=left).translation
    print(f"{name:5}  cup under {version.parent('cup'):5}  at {x:.2f} {y:.2f} {z:.2f}")

print(tk.graph.diff(scene, put))  # compare by content
print(scene == put, scene == back)
