"""Function blocks of RSG-DSL as classes in Python and C++: structures, names and checks."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from support.commands import tmkit
from support.effort import scaled_examples
from support.processes import run_process

import tmkit as tk
from tmkit.errors import BlockError, FileFormatError, SceneError
from tmkit.formats import compile_scene, convert_scene, load_scene, read_function_blocks
from tmkit.graph import SceneGraph
from tmkit.graph.patterns import Part, Structure
from tmkit.world import LiveScene, OutputFrame, PlaneSegmentation, run_block

DATA = Path(__file__).parents[1] / "data"
TABLE = DATA / "kitchen_table.rsg"
BLOCKS = DATA / "function_blocks"
GXX = shutil.which("g++")
needs_compiler = pytest.mark.skipif(GXX is None, reason="there is no g++")


def import_module(path: Path) -> ModuleType:
    """Return a module from its file."""
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def compile_text(folder: Path, text: str, name: str = "made.hpp", **options: Path) -> str:
    """Write the code of the function blocks of a text in RSG-DSL, and return the code."""
    file = folder / "scene.rsg"
    file.write_text(text, encoding="utf-8")
    (path, *_) = compile_scene(
        SceneGraph(), folder / name, blocks=read_function_blocks(file), **options
    )
    return path.read_text(encoding="utf-8")


def build(folder: Path, *sources: Path, standard: str = "c++17", program: str = "main") -> Path:
    """Compile a program with all warnings as errors, without the headers of tmkit."""
    flags = ["-O1", f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    include = [f"-I{folder}", f"-I{BLOCKS}"]
    done = run_process(
        ["g++", *flags, *include, *sources, "-o", folder / program], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder / program


def run_main(folder: Path, body: str, *, before: str = "", standard: str = "c++17") -> str:
    """Compile and run a main function that includes ``made.hpp``, and return its output."""
    source = folder / "main.cpp"
    source.write_text(
        f'#include <cassert>\n#include <iostream>\n{before}\n#include "made.hpp"\n'
        f"int main() {{\n{body}\n}}\n",
        encoding="utf-8",
    )
    program = build(folder, source, standard=standard)
    done = run_process([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def cloud() -> NDArray[np.float64]:
    """Return points of a floor and a table in the frame of a camera above them."""
    rng = np.random.default_rng(0)
    parts = [
        rng.uniform(-0.5, 0.5, (count, 3)) * [*size, 0.0] + [1.0, 0.0, height]
        for count, size, height in ((3000, (2.0, 2.0), -1.5), (2000, (0.8, 1.2), -0.8))
    ]
    points = np.concatenate(parts)
    return points + 0.001 * rng.normal(size=points.shape)


def points_text(points: NDArray[np.float64]) -> str:
    """Return points as the input of the program in C++."""
    return "".join(f"{x!r} {y!r} {z!r}\n" for x, y, z in points.tolist())


# ----------------------------------------------------------------------------------- C++ and Python


@needs_compiler
def test_a_block_in_cpp_agrees_with_python(tmp_path: Path) -> None:
    """Planes of one cloud by two independent implementations of RANSAC: origins and normals."""
    types = str(BLOCKS / "types.toml")
    command = ["scene", "compile", str(TABLE), "-o", "kitchen.hpp", "--types", types]
    outcome = tmkit(tmp_path, *command)
    assert outcome.code == 0, outcome.err
    program = build(tmp_path, BLOCKS / "plane_segmentation.cpp")
    points = cloud()
    output = run_process(
        [program, "1"], input=points_text(points), capture_output=True, text=True, check=True
    ).stdout
    made = [np.fromstring(line, sep=" ") for line in output.splitlines()]

    scene = SceneGraph().add_frame("camera", "world")
    scene = scene.add_frame(
        "cloud", "camera", classes=["cloud"], shapes=[tk.PointCloud(points, radius=0.005)]
    )
    block = PlaneSegmentation("planes", "camera", gap=0.2)
    scene = run_block(LiveScene(scene), block)
    planes = scene.frames_of_class("plane")
    assert len(made) == len(planes) == 2
    for numbers, plane in zip(made, planes, strict=True):
        matrix, expected = numbers[:16].reshape(4, 4), scene.pose(plane).as_matrix()
        assert numbers[16] == scene.attributes(plane)["points"]
        assert matrix[:, 2:] == pytest.approx(expected[:, 2:], abs=1e-9)
        assert matrix[:3, :3] @ matrix[:3, :3].T == pytest.approx(np.eye(3), abs=1e-12)


@needs_compiler
def test_cardinalities_are_checked_in_both_languages(tmp_path: Path) -> None:
    """Two clouds below each transform: 0 and 3 are rejected with both numbers."""
    text = TABLE.read_text(encoding="utf-8")
    text = text.replace("GeometricNode plane {", "GeometricNode plane { cardinality 2")
    compile_text(tmp_path, text, "kitchen.hpp", types=BLOCKS / "types.toml")
    program = build(tmp_path, BLOCKS / "plane_segmentation.cpp")
    compile_text(tmp_path, text, "kitchen_blocks.py")
    base = import_module(tmp_path / "kitchen_blocks.py").PlaneSegmentation
    points = cloud()
    scene = SceneGraph().add_frame("sensor", "world").add_frame("sensor_cloud", "sensor")
    shapes, attributes = [tk.PointCloud(points, radius=0.005)], {"name": "plane"}
    scene = scene.add_frame("cloud", "sensor_cloud", shapes=shapes)

    def execute(count: int) -> SceneGraph:
        frames = [OutputFrame(f"pose {k}") for k in range(2)]
        frames += [
            OutputFrame(f"plane {k} {n}", f"pose {k}", shapes=shapes, attributes=attributes)
            for k in range(2)
            for n in range(count)
        ]
        made = type("Made", (base,), {"execute": lambda self, *_: self.output(frames)})
        return run_block(LiveScene(scene), made())

    for count in (0, 2, 3):
        done = run_process(
            [program, str(count)], input=points_text(points), capture_output=True, text=True
        )
        if count == 2:
            assert [line.split()[-1] for line in done.stdout.splitlines()] == ["6000", "4000"]
            assert len(execute(count).group("plane_segmentation").frames) == 6
            continue
        assert done.returncode == 1
        expected = f"function block 'plane_segmentation': expected 2 of 'plane', got {count}\n"
        assert done.stderr == expected
        with pytest.raises(BlockError, match=f"{count} of 'plane' below 'pose 0', expected 2"):
            execute(count)


LISTING = """
PointCloudType PointCloudPCL {
  type "pcl::PointCloud<PointType>"
  sharedPtr "pcl::PointCloud<PointType>::Ptr"
  library "pcl"
}
PointCloud inputCloud type PointCloudPCL
PointCloud planeCloud type PointCloudPCL
GeometricNode pointCloud { Attribute ("name", "point_cloud") geometry inputCloud }
Group planes { Attribute ("name", "planes") child tfToPlaneCentroid }
Transform tfToPlaneCentroid {
  cardinality *
  child horizontalPlane
  transforms {
    RigidTransform t1 {
      stamp TimeStamp ( 0.0 s)
      value HomogeneousTransformationMatrix (
      [1.0, 0.0, 0.0, 0.0 m ],
      [0.0, 1.0, 0.0, 0.0 m ],
      [0.0, 0.0, 1.0, 0.0 m ],
      [0.0, 0.0, 0.0, 0.0   ])
    }
  }
}
GeometricNode horizontalPlane { Attribute ("name", "plane") geometry planeCloud }
FunctionBlock horizontalPlaneSegmentation {
  inputStructure pointCloud
  inputHook sensorPointCloud
  outputStructure planes
  outputHook sensor
}
"""
"""Listing 4 of Blumenthal and Bruyninckx, 2014, with the braces that its print has lost."""

PCL = """
#include <memory>
namespace pcl { template <class P> struct PointCloud {
    using Ptr = std::shared_ptr<PointCloud>; P first; }; }
"""
"""The part of the Point Cloud Library that listing 4 names."""


@needs_compiler
@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_listing_4_of_the_paper(tmp_path: Path, standard: str) -> None:
    """Types of the file, hooks, attributes, and a block that a derived class implements."""
    header = compile_text(tmp_path, LISTING)
    assert '// Include the header of library "pcl" for PointCloudPCL and PointCloudPCLPtr' in header
    before = f"""{PCL}
        struct PointType {{ int x; }};"""
    body = """
        using namespace made::structures;
        struct Block : made::HorizontalPlaneSegmentation {
            Planes execute(const PointCloud& input) override {
                Planes planes;
                planes.tfToPlaneCentroid.resize(3);
                planes.tfToPlaneCentroid[1].horizontalPlane.geometry = input.geometry;
                planes.tfToPlaneCentroid[1].stamp = 2.5;
                return planes;
            }
        };
        auto points = std::make_shared<made::types::PointCloudPCL>();
        points->first.x = 7;
        Block block;
        made::HorizontalPlaneSegmentation& interface = block;
        const Planes planes = interface.run(PointCloud{points});
        const auto& [matrix, stamp, plane] = planes.tfToPlaneCentroid.at(1);
        std::cout << Block::name << " " << Block::input_hook << " " << Block::output_hook << " "
                  << stamp << " " << plane.geometry->first.x << " " << matrix[15] << " "
                  << Planes::attributes[0].first << " " << PointCloud::attributes[0].second;"""
    assert run_main(tmp_path, body, before=before, standard=standard) == (
        'horizontalPlaneSegmentation sensorPointCloud sensor 2.5 7 1 name "point_cloud"'
    )


@needs_compiler
def test_a_table_replaces_types_and_includes_headers(tmp_path: Path) -> None:
    """Types, headers, or both: for PCL without a typedef in the program."""
    (tmp_path / "pcl").mkdir()
    (tmp_path / "pcl" / "point_cloud.h").write_text(f"#pragma once\n{PCL}")
    types = tmp_path / "types.toml"
    types.write_text(
        '[PointCloudPCL]\ntype = "pcl::PointCloud<double>"\ninclude = "pcl/point_cloud.h"\n'
    )
    header = compile_text(tmp_path, LISTING, types=types)
    assert "#include <pcl/point_cloud.h>\n" in header
    assert "Ptr" not in header
    body = "std::cout << made::structures::PointCloud{{2.5}}.geometry.first;"
    assert run_main(tmp_path, body) == "2.5"
    types.write_text('[PointCloudPCL]\ninclude = ["<pcl/point_cloud.h>", \'"types.h"\']\n')
    (tmp_path / "types.h").write_text("struct PointType { int x; };\n")
    compile_text(tmp_path, LISTING, types=types)
    body = "std::cout << sizeof(made::structures::PointCloud{}.geometry->first);"
    assert run_main(tmp_path, body) == "4"


EVERYTHING = """
Box box { sizeX 1 m sizeY 1 m sizeZ 1 m }
Sphere ball { radius 1 m }
Cylinder tin { radius 1 m height 2 m }
Cone hat { radius 1 m height 2 m }
Capsule pill { radius 1 m height 2 m }
Mesh skin
PointCloud dust
GeometricNode boxes { cardinality 2 geometry box }
GeometricNode balls { cardinality * geometry ball }
Node "zero \\u0000" { cardinality 2 }
GeometricNode tin_of { geometry tin }
GeometricNode hat_of { geometry hat }
GeometricNode pill_of { geometry pill }
GeometricNode skin_of { geometry skin }
GeometricNode dust_of { geometry dust Attribute ("n", 3, TimeStamp (1 s)) Attribute ("t", ["a"]) }
Node mark { Attribute ("\\"quoted\\"", "??/ \\n \\u0000 \\u00e9") }
Group inner { cardinality 2 child boxes child balls }
Transform outer { cardinality 3 child inner child mark }
Group all { child tin_of child hat_of child pill_of child skin_of child dust_of }
FunctionBlock first { inputStructure outer outputStructure all trigger every 0.5 s }
FunctionBlock second { inputStructure all outputStructure outer trigger after first }
FunctionBlock source { outputStructure balls }
FunctionBlock sink { inputStructure balls inputHook "a \\"hook\\" \\u0000" }
FunctionBlock nothing { }
FunctionBlock zero { inputStructure "zero \\u0000" }
"""


@needs_compiler
def test_every_kind_of_node_in_cpp(tmp_path: Path) -> None:
    """Geometries without a type, cardinalities at each level, blocks without input or output."""
    compile_text(tmp_path, EVERYTHING)
    body = """
        using namespace made::structures;
        static_assert(std::is_same_v<decltype(Outer::inner), std::vector<Inner>>);
        static_assert(std::is_same_v<decltype(Inner::balls), std::vector<Balls>>);
        static_assert(std::is_same_v<decltype(Outer::mark), Mark>);
        struct First : made::First {
            All execute(const std::vector<Outer>& input) override {
                All all;
                all.tin_of.geometry.height = input[0].inner[0].boxes[0].geometry.size[1];
                all.dust_of.geometry.push_back({1.0, 2.0, 3.0});
                all.skin_of.geometry.triangles.push_back({0, 1, 2});
                return all;
            }
        };
        struct Second : made::Second {
            std::vector<Outer> outers;
            std::vector<Outer> execute(const All&) override { return outers; }
        };
        struct Source : made::Source {
            std::vector<Balls> execute() override { return std::vector<Balls>(4); }
        };
        struct Sink : made::Sink {
            std::size_t count = 0;
            void execute(const std::vector<Balls>& input) override { count = input.size(); }
        };
        struct Nothing : made::Nothing { void execute() override {} };

        std::vector<Outer> outers(3);
        for (auto& outer : outers) {
            outer.inner.resize(2);
            for (auto& inner : outer.inner) inner.boxes.resize(2);
        }
        outers[0].inner[0].boxes[0].geometry.size = {1.0, 2.0, 3.0};
        First first;
        std::cout << first.run(outers).tin_of.geometry.height << "\\n";
        auto attempt = [](auto&& function) {
            try {
                function();
            } catch (const std::length_error& error) {
                std::cout << error.what() << "\\n";
            }
        };
        outers[2].inner[1].boxes.pop_back();
        attempt([&] { first.run(outers); });
        outers[1].inner.clear();
        attempt([&] { first.run(outers); });
        Second second;
        attempt([&] { second.run(All{}); });
        second.outers.resize(4);
        attempt([&] { second.run(All{}); });
        Sink sink;
        sink.run(Source().run());
        Nothing().run();
        struct Zero : made::Zero {
            void execute(const std::vector<made::structures::Zero>&) override {}
        };
        attempt([] { Zero().run({}); });
        std::cout << sink.count << " " << Sink::input_hook.size() << " "
                  << Sink::output_hook.size() << " " << DustOf::attributes[0].second
                  << DustOf::attributes[1].second << " "
                  << Mark::attributes[0].first << Mark::attributes[0].second << "\\n";"""
    output = run_main(tmp_path, body, before="#include <type_traits>")
    assert output.splitlines() == [
        "2",
        "function block 'first': expected 2 of 'boxes', got 1",
        "function block 'first': expected 2 of 'inner', got 0",
        "function block 'second': expected 3 of 'outer', got 0",
        "function block 'second': expected 3 of 'outer', got 4",
        "function block 'zero': expected 2 of 'zero ",  # what() ends at the zero
        '4 10 0 3["a"] ' + '"quoted"' + json.dumps("??/ \n \0 é"),
    ]


def test_every_kind_of_node_in_python(tmp_path: Path) -> None:
    """A group is not a frame: its cardinality multiplies those of the nodes in it."""
    compile_text(tmp_path, EVERYTHING, "made.py")
    module = import_module(tmp_path / "made.py")
    first = type("Made", (module.First,), {"execute": None})(input_hook="world")
    mark = Part("mark", attributes={'"quoted"': "??/ \n \0 é"})
    parts = [Part("outer"), mark, Part("boxes", shape="box"), Part("balls", shape="sphere")]
    (structure,) = first.inputs.values()
    assert sorted(structure.nodes, key=repr) == sorted(parts, key=repr)
    assert dict(structure.counts) == {"outer": 3, "boxes": 4, "balls": None}
    assert dict(structure.parents) == {"mark": "outer", "boxes": "outer", "balls": "outer"}
    nothing = type("Made", (module.Nothing,), {"execute": None})(input_hook="world")
    assert (nothing.inputs, nothing.outputs) == ({}, {})


# ------------------------------------------------------------------------------- names of strangers

NAMES = (
    "class",
    "this",
    "and",
    "errno",
    "linux",
    "EOF",
    "geometry",
    "matrix",
    "std",
    "structures",
    "made",
    "block_name",
    "1st",
    "___",
    "Größe",
    "桌子",
    "Plane",
    "int x; } #include",
    "FunctionBlock",
    "Pattern",
    "Structure",
    "None",
    'a"""\nraise SystemExit("run")\n"""',
    "back\\slash\\",
    "??/",
    "*/ /* //",
)
"""Names that are keywords, macros, names of the generators, or code."""


def blocks_of_names(names: Sequence[str]) -> str:
    """Return a file with a block for each name, whose hooks and structures have it too."""
    lines = []
    for name in names:
        quoted = json.dumps(name)
        lines += [
            f"GeometricNode {quoted} {{ geometry cloud Attribute ({quoted}, {quoted}) }}",
            f"Transform {json.dumps('tf of ' + name)} {{ child {quoted} }}",
            f"FunctionBlock {quoted} {{ outputStructure {json.dumps('tf of ' + name)}",
            f"  inputHook {quoted} trigger onChange {quoted} }}",
        ]
    return "PointCloud cloud\n" + "\n".join(lines)


@needs_compiler
def test_odd_names_become_names_in_cpp(tmp_path: Path) -> None:
    """Keywords, macros, other alphabets and code: constants keep each name."""
    for name in NAMES:
        folder = tmp_path / str(NAMES.index(name))
        folder.mkdir()
        compile_text(folder, blocks_of_names([name]))
    folders = [tmp_path / str(k) for k in range(len(NAMES))]
    names = []
    for k, folder in enumerate(folders):
        header = (folder / "made.hpp").read_text()
        (folder / "made.hpp").write_text(
            header.replace("namespace made {", f"namespace made{k} {{")
        )
        (block,) = re.findall(r"^class (\w+) \{$", header, re.MULTILINE)
        names.append(f"made{k}::{block}::name")
    includes = "".join(f'#include "{k}/made.hpp"\n' for k in range(len(NAMES)))
    (tmp_path / "main.cpp").write_text(
        f"#include <cstdio>\n{includes}int main() {{\n"
        + "".join(
            f'    for (unsigned char c : {name}) std::printf("%02x", c);\n    std::puts("");\n'
            for name in names
        )
        + "}\n"
    )
    program = build(tmp_path, tmp_path / "main.cpp", standard="gnu++17")
    lines = run_process([program], capture_output=True, text=True, check=True).stdout.split()
    assert [bytes.fromhex(line).decode() for line in lines] == list(NAMES)


def test_odd_names_become_names_in_python(tmp_path: Path) -> None:
    """No name runs, whatever quotes it has; each block can be derived and has its structures."""
    for k, name in enumerate(NAMES):
        compile_text(tmp_path, blocks_of_names([name]), f"made{k}.py")
        module = import_module(tmp_path / f"made{k}.py")
        (base,) = [
            value
            for value in vars(module).values()
            if isinstance(value, type) and value.__module__ == f"made{k}"
        ]
        made = type("Made", (base,), {"execute": None})()
        assert made.name == made.input_hook == name
        assert name in str(base.__doc__) or repr(name) in str(base.__doc__)
        (structure,) = made.outputs.values()
        assert isinstance(structure, Structure)
        assert [part.name for part in structure.nodes] == [f"tf of {name}", name]
        assert base.TRIGGERS[0].below == name


_SNIPPETS = st.sampled_from(
    [
        '"',
        '"""',
        "'",
        "\\",
        "\n",
        "\r",
        "//",
        "/*",
        "*/",
        "#",
        ";",
        "{",
        "}",
        "(",
        ")",
        "??/",
        'R"(',
        "\0",
        "\u2028",
        "é",
        "x",
    ]
)


@given(st.lists(st.lists(_SNIPPETS, min_size=1, max_size=6).map("".join), min_size=1, max_size=3))
@settings(max_examples=scaled_examples(0.5), deadline=None)
def test_no_text_leaves_its_literal(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    """The code of both languages without literals and comments has names only, or names collide."""
    folder = tmp_path_factory.mktemp("made")
    text = blocks_of_names([*dict.fromkeys(names)])
    plain = blocks_of_names([f"name{chr(97 + k)}" for k in range(len(dict.fromkeys(names)))])
    try:
        header = compile_text(folder, text)
        module = compile_text(folder, text, "made.py")
    except FileFormatError as error:
        assert re.search(r"would both be", str(error))  # noqa: PT017
        return
    assert cpp_skeleton(header) == cpp_skeleton(compile_text(folder, plain))
    expected = compile_text(folder, plain, "made.py")
    assert python_skeleton(module) == python_skeleton(expected)


_DAMAGE = (
    *("", "{", "}", '"', "cardinality 2 ", "cardinality * ", "child plane ", "é", "\\u0000"),
    *("Group g { child cloud }", "Transform", "cloud", "type", "inputStructure planes "),
    "trigger every 0 s ",
)
"""Texts that replace parts of a file."""


@given(st.data())
@settings(max_examples=scaled_examples(0.5), deadline=None)
def test_damaged_files_are_rejected_or_compiled(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """An error of the format, or code of both languages and a file with the same blocks."""
    folder = tmp_path_factory.mktemp("damaged")
    text = data.draw(st.sampled_from([LISTING, EVERYTHING, SHARED]))
    for _ in range(data.draw(st.integers(1, 3))):
        begin = data.draw(st.integers(0, len(text)))
        end = min(len(text), begin + data.draw(st.integers(0, 12)))
        text = text[:begin] + data.draw(st.sampled_from(_DAMAGE)) + text[end:]
    try:
        header = compile_text(folder, text)
        module = compile_text(folder, text, "made.py")
    except FileFormatError as error:
        assert "scene.rsg:" in str(error)  # noqa: PT017
        return
    assert cpp_skeleton(header).count("{") == cpp_skeleton(header).count("}")
    compile(module, "made.py", "exec")
    blocks = read_function_blocks(folder / "scene.rsg")
    (copy,) = convert_scene(SceneGraph(), folder / "copy.rsg", blocks=blocks)
    assert plain(read_function_blocks(copy)) == plain(blocks)


def cpp_skeleton(header: str) -> list[str]:
    """Return the tokens of C++ code, with one word for names and literals."""
    assert all(line.isascii() and line.isprintable() for line in header.split("\n"))
    code = re.sub(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"(?:, \d+)?', " literal ", header)
    return [re.sub(r"^\w+$", "w", token) for token in re.findall(r"\w+|\S", code)]


def python_skeleton(module: str) -> list[str]:
    """Return the types of the nodes of Python code."""
    return [type(node).__name__ for node in ast.walk(ast.parse(module))]


@pytest.mark.parametrize("name", ["made.hpp", "made.py"])
def test_blocks_of_one_name_collide(tmp_path: Path, name: str) -> None:
    """The names become one class."""
    text = 'FunctionBlock a_b { }\nFunctionBlock "a b" { }\n'
    with pytest.raises(FileFormatError, match=r"scene.rsg:2:15: .*'a.b' and 'a.b' would both be"):
        compile_text(tmp_path, text, name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "Group g { child leg1 child leg_1 }\nNode leg1 { }\nNode leg_1 { }\n"
            "FunctionBlock f { outputStructure g }",
            "3:6: the nodes 'leg_1' and 'leg1' at .*:2:6 would both be 'Leg1' in C",
        ),
        (
            'Group g { child "a b" child a_b }\nNode "a b" { }\nNode a_b { }\n'
            "FunctionBlock f { outputStructure g }",
            "would both be 'AB' in C",
        ),
        (
            'PointCloudType t { type "A" sharedPtr "B" }\nPointCloudType tPtr { type "C" }\n'
            "PointCloud p type t\nPointCloud q type tPtr\n"
            "GeometricNode a { geometry p }\nGeometricNode b { geometry q }\n"
            "Group g { child a child b }\nFunctionBlock f { outputStructure g }",
            "2:16: the type 'tPtr' and another would both be 'TPtr' in C",
        ),
        (
            'Shape s data {"kind": "plane"}\nGeometricNode a { geometry s }\n'
            "FunctionBlock f { outputStructure a }",
            "2:15: the geometry of 'a' needs a declared type",
        ),
    ],
)
def test_what_cpp_cannot_express(tmp_path: Path, text: str, message: str) -> None:
    """Errors have the place in the file."""
    with pytest.raises(FileFormatError, match=message):
        compile_text(tmp_path, text)


@pytest.mark.parametrize(
    "expression",
    [
        "int; } int x; namespace {",
        "A\nB",
        "A\n#include <x>",
        "#define A",
        "A // b",
        "A /* b */",
        'A "b"',
        "A<B",
        "A>B<C",
        "decltype(x)",
        "A{}",
        "",
        "1A",
        "A\\",
        "Größe",
        "A" * 501,
    ],
)
def test_types_are_no_code(tmp_path: Path, expression: str) -> None:
    """A type of a scene file or of the table is names, '::', '<', '>', ',' and '*'."""
    text = LISTING.replace('"pcl::PointCloud<PointType>"', json.dumps(expression))
    with pytest.raises(
        FileFormatError, match=r"scene.rsg:2:16: .*not a type of C|has more than 500"
    ):
        compile_text(tmp_path, text)
    types = tmp_path / "types.toml"
    types.write_text(f"[PointCloudPCL]\ntype = {json.dumps(expression)}\n")
    with pytest.raises(FileFormatError, match=r"types.toml:2: .*not a type of C|has more than 500"):
        compile_text(tmp_path, LISTING, types=types)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[PointCloudPLC]\n",
            "types.toml:1: no function block uses a data type 'PointCloudPLC'; did",
        ),
        ("PointCloudPCL = 1\n", r"types.toml:1: 'PointCloudPCL': expected a table such as"),
        (
            "[PointCloudPCL]\n\nsharedPtr = 'A'\n",
            "types.toml:3: .*unknown key 'sharedPtr', expected",
        ),
        (
            "[PointCloudPCL]\ntype = 3\n",
            r"types.toml:2: PointCloudPCL.type: expected a text, got 3",
        ),
        (
            "[PointCloudPCL]\ninclude = ['a.h', 'b\\n.h']\n",
            r"types.toml:2: PointCloudPCL.include: .*b.* is not a header name",
        ),
        ("[PointCloudPCL]\ninclude = ''\n", "'' is not a header name"),
        ("[PointCloudPCL]\ninclude = ['<a.h']\n", "'<a.h' is not a header name"),
        ("[PointCloudPCL\n", "types.toml:1:.* is not TOML"),
    ],
)
def test_bad_tables_of_types(tmp_path: Path, text: str, message: str) -> None:
    """Errors have the line of the table."""
    types = tmp_path / "types.toml"
    types.write_text(text)
    with pytest.raises(FileFormatError, match=message):
        compile_text(tmp_path, LISTING, types=types)


def test_tables_of_types_are_for_cpp(tmp_path: Path) -> None:
    """And have to exist; on the command line without a traceback."""
    with pytest.raises(SceneError, match=r"made.py: types are for C\+\+ headers \(.hpp\)"):
        compile_text(tmp_path, LISTING, "made.py", types=BLOCKS / "types.toml")
    with pytest.raises(FileFormatError, match=r"gone\.toml: cannot be read: No such file"):
        compile_text(tmp_path, LISTING, types=tmp_path / "gone.toml")
    command = ["scene", "compile", str(TABLE), "-o", "made.hpp", "--types", str(TABLE)]
    outcome = tmkit(tmp_path, *command)
    assert outcome.code == 2
    assert "is not TOML" in outcome.err
    assert "Traceback" not in outcome.err
    assert not (tmp_path / "made.hpp").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("double", "'double' is a reserved word of C"),
        ("linux", "'linux' is a reserved word of C"),
        ("std", "'std' is a library's namespace"),
        ("tmkit", "'tmkit' is a library's namespace"),
        ("a__b", "'a__b' is not a name in C"),
        ("_a", "'_a' is not a name in C"),
        ("größe", "'größe' is not a name in C"),
    ],
)
def test_names_of_headers(tmp_path: Path, name: str, message: str) -> None:
    """A header is a namespace; a Python module may have these names."""
    with pytest.raises(SceneError, match=message):
        compile_scene(SceneGraph(), tmp_path / f"{name}.hpp")
    assert compile_scene(SceneGraph(), tmp_path / f"{name}.py")


def test_files_share_nodes_and_types_that_are_equal(tmp_path: Path) -> None:
    """A block of one file takes what that of another makes; other nodes of the name collide."""
    types = 'PointCloudType t { type "std::vector<float>" }\nPointCloud p type t\n'
    node = 'GeometricNode cloud { geometry p Attribute ("k", "v") }\n'
    (tmp_path / "a.rsg").write_text(f"{types}{node}FunctionBlock a {{ outputStructure cloud }}")
    (tmp_path / "b.rsg").write_text(f"\n{types}{node}FunctionBlock b {{ inputStructure cloud }}")

    def compile_both() -> str:
        blocks = read_function_blocks(tmp_path / "a.rsg", tmp_path / "b.rsg")
        (path,) = compile_scene(SceneGraph(), tmp_path / "made.hpp", blocks=blocks)
        return path.read_text()

    header = compile_both()
    assert header.count("struct Cloud {") == header.count("using T = std::vector<float>;") == 1
    assert "Include the header" not in header
    assert "structures::Cloud run()" in header
    assert "void run(const structures::Cloud& input)" in header
    text = (tmp_path / "b.rsg").read_text()
    (tmp_path / "b.rsg").write_text(text.replace("float", "double"))
    with pytest.raises(
        FileFormatError, match=r"b.rsg:4:15: the nodes 'cloud' and 'cloud' at .*a.r"
    ):
        compile_both()
    (tmp_path / "b.rsg").write_text(text.replace("float", "double").replace("cloud", "other"))
    with pytest.raises(FileFormatError, match=r"b.rsg:2:16: 't' is another type than at .*a.rsg:1"):
        compile_both()


def test_types_of_python_have_no_effect_in_cpp(tmp_path: Path) -> None:
    """The points are those of a vector."""
    header = compile_text(tmp_path, TABLE.read_text(encoding="utf-8"))
    assert "numpy" not in header
    assert "shapes::PointCloud geometry{};" in header


# ----------------------------------------------------------------------------- structures of a file


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cardinality 0", r"unexpected '0', expected '\*' or a whole number from 1 to 999999"),
        ("cardinality -1", "unexpected '-1', expected"),
        ("cardinality 1.5", "unexpected '1.5', expected"),
        ("cardinality 1000000", "unexpected '1000000', expected"),
        ("cardinality \u0663", "unexpected '\u0663', expected"),
        ("cardinality many", "unexpected 'many', expected"),
        ("cardinality 1 cardinality 2", "1:25: a node has one cardinality"),
        ("child b", "'b' is twice in the structure of a function block, below 'a' and 'a': set"),
        ("child c", "'b' is twice in the structure of a function block, below 'c' and 'a'|'a' and"),
    ],
)
def test_bad_structures(tmp_path: Path, text: str, message: str) -> None:
    """Each has its place."""
    file = tmp_path / "scene.rsg"
    file.write_text(
        f"Group a {{ {text} child b }}\nNode b {{ }}\nTransform c {{ child b }}\n"
        "FunctionBlock f { inputStructure a }\n"
    )
    with pytest.raises(FileFormatError, match=message):
        read_function_blocks(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "Node a { }\nFunctionBlock f { inputStructure a inputStructure a }",
            "2:36: a function block has one 'inputStructure'; nodes in a Group are one",
        ),
        ("FunctionBlock f { outputHook a outputHook b }", "1:32: .* has one 'outputHook'"),
        (
            "PointCloud p type gone\nGeometricNode a { geometry p }\n"
            "FunctionBlock f { inputStructure a }",
            "1:19: the type 'gone' is declared nowhere",
        ),
        (
            'Node a { Attribute ("n", 1e999) }\nFunctionBlock f { inputStructure a }',
            r"1:6: attribute 'n'.* finite|1:6: .*n.*inf",
        ),
        ('FunctionBlock "\\ud800" { }', "1:15: this text has half of a surrogate pair"),
    ],
)
def test_bad_blocks(tmp_path: Path, text: str, message: str) -> None:
    """Each has its place."""
    file = tmp_path / "scene.rsg"
    file.write_text(text)
    with pytest.raises(FileFormatError, match=message):
        read_function_blocks(file)


def test_nodes_with_many_paths_take_no_time(tmp_path: Path) -> None:
    """2^45 paths lead to the last node."""
    lines = [
        f"Group a{k} {{ child b{k} child c{k} }}\nGroup b{k} {{ child a{k + 1} }}\n"
        f"Group c{k} {{ child a{k + 1} }}"
        for k in range(45)
    ]
    file = tmp_path / "scene.rsg"
    file.write_text("\n".join([*lines, "Group a45 { }", "FunctionBlock f { inputStructure a0 }"]))
    with pytest.raises(FileFormatError, match="is twice in the structure of a function block"):
        read_function_blocks(file)


def test_large_structures_are_rejected_in_python(tmp_path: Path) -> None:
    """The search for an input assigns at most 100 frames; C++ has vectors."""
    text = "Node a { cardinality 101 }\nFunctionBlock f { inputStructure a }"
    with pytest.raises(FileFormatError, match="1:6: a structure has at most 100 frames"):
        compile_text(tmp_path, text, "made.py")
    header = compile_text(tmp_path, text)
    assert 'detail::check_count(name, std::string_view{"a"}, 101, input.size());' in header


def plain(value: object) -> object:
    """Return a specification without locations, as lists."""
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if field.name != "place"]
        return [type(value).__name__, *(plain(getattr(value, name)) for name in names)]
    return [plain(item) for item in value] if isinstance(value, tuple) else value


SHARED = """
root world
Group world { child camera child cloud child "two words" }
Transform camera { child sensor }
Group sensor { Attribute ("name", "s") }
GeometricNode cloud { geometry box }
Node "two words" { }
Box box { sizeX 5 cm sizeY 1 m sizeZ 1 m }
GeometricNode other { called "cloud" geometry dust cardinality 7 }
PointCloud dust type dust_type
PointCloudType dust_type { type "A<B>" library "l \\"q\\"" }
MeshType skin_type { sharedPtr "C" }
Mesh skin type skin_type
Shape any data {"kind": "plane"}
GeometricNode skins { geometry skin }
GeometricNode anything { geometry any }
Group all { child other child skins child anything child camera }
FunctionBlock "first block" {
  Attribute ("k", [1, {"a": null}], TimeStamp (2 s)) Attribute ("t", "x") Attribute ("t", "y")
  inputStructure cloud inputHook sensor outputStructure all outputHook "two words"
  trigger onChange sensor trigger after second trigger every 3 Hz
}
FunctionBlock second { inputStructure other inputHook later trigger onChange "at run time" }
FunctionBlock third { outputHook skins outputStructure skins }
"""
"""Blocks whose structures have names of the scene, or are part of it."""


@pytest.mark.parametrize(
    "text", [SHARED, EVERYTHING, LISTING, blocks_of_names(NAMES), TABLE.read_text(encoding="utf-8")]
)
def test_a_converted_file_has_the_same_blocks(tmp_path: Path, text: str) -> None:
    """Structures, cardinalities, types, hooks and triggers; the text is stable."""
    file, copy, again = (tmp_path / name for name in ("scene.rsg", "copy.rsg", "again.rsg"))
    file.write_text(text, encoding="utf-8")
    for source, target in ((file, copy), (copy, again)):
        blocks = read_function_blocks(source)
        assert convert_scene(load_scene(source), target, blocks=blocks) == (target,)
        assert plain(read_function_blocks(target)) == plain(blocks)
    assert again.read_bytes() == copy.read_bytes()
    assert load_scene(copy) == load_scene(file)


@pytest.mark.parametrize(
    ("cardinality", "trigger", "is_noted"),
    [
        ("cardinality 2", "trigger after first", False),
        ("cardinality *", "trigger after first", True),
        ("", "trigger after between trigger after first", True),
        ("cardinality 2", "trigger after between", False),
        ("", "", False),
    ],
)
def test_chains_of_a_model_are_checked(
    tmp_path: Path, cardinality: str, trigger: str, is_noted: bool
) -> None:
    """An input has to be in the scene or an output of a block before, with enough of each node."""
    (tmp_path / "scene.rsg").write_text(
        "root world\nGroup world { child there }\nNode there { }\n"
        f"Node a {{ {cardinality} }}\nTransform pair {{ child b child c }}\n"
        'Node b { Attribute ("k", "v") }\nNode c { Attribute ("k", "v") }\n'
        f'Node d {{ Attribute ("k", "v") {cardinality} }}\nGroup ds {{ child d }}\n'
        "Node e { }\n"
        "FunctionBlock first { outputStructure ds }\n"
        "FunctionBlock between { inputStructure e trigger after first }\n"
        f"FunctionBlock last {{ inputStructure two {trigger} }}\n"
        'Group two { child x }\nNode x { cardinality 2 Attribute ("k", "v") }\n'
    )
    outcome = tmkit(tmp_path, "scene", "check", "scene.rsg")
    assert outcome.code == 0
    notes = [line for line in outcome.out.splitlines() if line.startswith("note: function block")]
    names = "'between', 'first'" if "between" in trigger else "'first'"
    expected = (
        f"note: function block 'last' runs after {names}, whose outputs have no 'two' as its input"
        " needs"
    )
    assert notes == ([expected] if is_noted else [])


def test_other_formats_have_no_blocks(tmp_path: Path) -> None:
    """The command names them."""
    outcome = tmkit(tmp_path, "scene", "convert", str(TABLE), "-o", "table.json")
    assert outcome.code == 0
    assert "a .json file has no function blocks: 'plane_segmentation'" in outcome.err
    outcome = tmkit(tmp_path, "scene", "convert", str(TABLE), "-o", "table.rsg")
    assert "no function blocks" not in outcome.err
    assert plain(read_function_blocks(tmp_path / "table.rsg")) == plain(read_function_blocks(TABLE))
