"""What the objects of JAX have and ours have not, by object, with the reason."""

import importlib

import pytest

jax = pytest.importorskip("jax")

import minijax  # noqa: E402

MACHINERY = """
    aval_mutable_qdd cur_qdd mutable_qdd final_qdd initial_qdd final_aval_qdds
    in_aval_qdds is_high has_qdd lo_ty lo_ty_qdd lower_val lower_val2 raise_val
    raise_val2 to_lo to_ct_spec to_tangent_spec to_lojax lojax map_jaxpr is_ref
    ref_allocating ref_primitive skip_canonicalization dimension_as_value get_referent
    get_const parent val full_lower to_concrete_value traceback source_info ctx
    format input_formats output_formats check_compatible_aval
""".split()  # layouts of XLA, references, and types of a level that JAX is to have
ABSENT = {
    # of JAX before 0.4, where they raise; and what only arrays have, not their class
    "array": "device_buffer device_buffers copy_to_host_async device",
    "key": "pprint",
    "tracer": "device sharding batch_dim",  # a value of a program lies nowhere yet
    "treedef": """deserialize_using_proto from_iterable_tree serialize_using_proto
        from_node_data_and_children""",  # protocol buffers; a second registry
    "device": """client get_stream_for_external_ready_events host_id live_buffers
        memory poison_execution task_id""",  # of XLA
    "jaxpr": "debug_info effects",  # programs list no effects; equations keep lines
    "eqn": "effects",
    "var": "pretty_print",
    "literal": "hash pretty_print",
    "primitive": """bind_with_trace
        def_bind_with_trace def_effectful_abstract_eval def_effectful_abstract_eval2
        is_effectful""",  # rows
    "exported": """calling_convention_version in_shardings_hlo mlir_module_serialized
        module_kept_var_idx ordered_effects out_shardings_hlo serialize
        unordered_effects uses_global_constants""",  # export writes text
}
# An abstract value of JAX has the methods of arrays, for its tracers to find them.
OF_AVALS = """
    array_abstraction_level at_least_vspace dec_rank inc_rank leading_axis_spec
    memory_space normalize nospec shard strip_weak_type to_ct_aval
    unshard update_manual_axis_type update_weak_type vspace_add broadcast
""".split()


def objects(root):
    """Return an object of each kind, by name."""
    j = importlib.import_module(root)
    jnp = importlib.import_module(f"{root}.numpy")
    export = importlib.import_module(f"{root}.export")
    x, seen = jnp.arange(4.0), []
    step = j.jit(lambda x: x + 1)
    traced, lowered = step.trace(x), step.lower(x)
    j.jit(lambda x: [seen.append(x), x][1])(x)
    j.vmap(lambda x: [seen.append(x), x][1])(x)
    closed = j.make_jaxpr(lambda x: x + 1)(x)
    eqn = closed.jaxpr.eqns[0]
    mesh = j.make_mesh((1,), ("x",))
    return {
        "array": [x, j.Array], "key": [j.random.key(0)], "tracer": seen,
        "key dtype": [j.random.key(0).dtype], "aval": [j.typeof(x)],
        "treedef": [j.tree_util.tree_structure((1, 2)), j.tree_util.PyTreeDef],
        "sharding": [x.sharding, j.NamedSharding(mesh, j.P("x")), j.P("x")],
        "mesh": [mesh, mesh.abstract_mesh], "device": [j.devices()[0]],
        "jitted": [step, j.pmap(lambda x: x)], "stages": [traced, lowered],
        "compiled": [lowered.compile()], "shard": [x.addressable_shards[0]],
        "struct": [j.ShapeDtypeStruct((2,), "float32")],
        "jaxpr": [closed, closed.jaxpr], "eqn": [eqn], "var": [closed.jaxpr.invars[0]],
        "literal": [eqn.invars[1]], "primitive": [eqn.primitive],
        "numpy": [jnp.float32, jnp.add, jnp.finfo("float32"), jnp.iinfo("int32")],
        "at": [x.at, x.at[0]], "vjp": [j.vjp(jnp.sin, x)[1]],
        "own rules": [j.custom_jvp(jnp.sin), j.custom_vjp(jnp.sin)],
        "exported": [export.export(step)(x)],
    }  # fmt: skip


@pytest.fixture(scope="module")
def both():
    return objects("minijax"), objects("jax")


def has(value, name):
    """Return whether there is an attribute; its error may be another one's."""
    try:
        getattr(value, name)
    except AttributeError:
        return False
    except Exception:
        return True
    return True


def known(name):
    reasons = {*MACHINERY, *ABSENT.get(name, "").split()}
    methods = {*OF_AVALS, *dir(minijax.Array)} if name == "aval" else set()
    return reasons | methods


@pytest.mark.parametrize("name", objects("minijax"))
def test_an_object_has_jax_s_attributes_but_those_with_a_reason(name, both):
    lacking = set()
    for ours, theirs in zip(both[0][name], both[1][name], strict=True):
        names = {each for each in dir(theirs) if not each.startswith("_")}
        lacking |= {each for each in names if not has(ours, each)}
    assert lacking <= known(name)
    assert {*ABSENT.get(name, "").split()} <= lacking
