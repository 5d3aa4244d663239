"""Functions with the names of SciPy beside those of real JAX, as a table of calls.

`sp` is `jax.scipy` or `minijax.scipy`, `jnp` and `jax` accordingly.
"""

import importlib

import jax
import numpy as np
import pytest

import minijax

rng = np.random.default_rng(0)
A = rng.normal(size=(4, 4)).astype("float32")
B = rng.normal(size=(4, 2)).astype("float32")
DEFINITE = A @ A.T + 2 * np.eye(4, dtype="float32")
BATCH = np.stack([DEFINITE, DEFINITE.T + np.eye(4, dtype="float32")])
V = np.float32([1.0, -2.0, 0.5, 3.0])
C = (A + 1j * A[::-1]).astype("complex64")
HERMITIAN = C @ C.conj().T + 2 * np.eye(4, dtype="complex64")
SIGNAL = rng.normal(size=(2, 40)).astype("float32")
KNOWN = {"A": A, "B": B, "C": C, "D": DEFINITE, "DD": BATCH, "H": HERMITIAN}
KNOWN["P"] = np.float32([0.5, 0.5, 1.5, 2.5, 3.5, 8.5, 30.5])
KNOWN["Q"] = np.float32([0.0, 0.3, 2.0, 2.5, 9.0, 8.0, 27.0])
KNOWN["U"] = np.float32([0.0, 0.3, 0.5, 0.9, 1.0, 0.01, 0.6])
KNOWN |= {"N": np.array([1, 2, 3]), "S": SIGNAL, "V": V}


LINALG = """
cholesky(D); cholesky(D, lower=True); cholesky(H); cho_solve(cho_factor(D), B)
cho_solve(cho_factor(DD, lower=True), B);
lu_solve(lu_factor(A), B); lu_solve(lu_factor(A), V, trans=1)
lu_solve(lu_factor(C), B, trans=2); lu(A); lu(B)
lu(B.T, permute_l=True); qr(B, mode="r"); qr(B)
eigh(D)[0]; eigh(D, eigvals_only=True, lower=False)
det(A); inv(D); solve(D, V, assume_a="pos", lower=True)
solve(A, B); solve(DD, B); solve_triangular(A, B, trans="T", lower=True)
solve_triangular(C, V, trans=2); solve_triangular(D, V, unit_diagonal=True)
polar(D)[1]; polar(B); polar(B, method="svd"); polar(B.T, side="left")
expm(A); expm(6 * A); expm(C); expm(jnp.triu(A), upper_triangular=True); expm(DD / 4)
expm(0 * A); expm_frechet(A, D)
expm(400 * A, max_squarings=3)
block_diag(A, 1, V, B); block_diag(); toeplitz(V); toeplitz(V, B[:, 0]); toeplitz(C[0])
toeplitz(A, V[:3]); hankel(V); hankel(N, N[1:]); circulant(A); circulant(N)
convolution_matrix(V, 3); convolution_matrix(V, 3, "same")
convolution_matrix(A, 6, "valid")
convolution_matrix(V, 6, "same"); leslie(V, V[1:]); companion(V); companion(N)
fiedler(V)
fiedler_companion(A.ravel()[:7]); fiedler_companion(A.ravel()[:6])
fiedler_companion(V[:2]); fiedler_companion(V[:3]); fiedler_companion(V[:1])
hilbert(4); invhilbert(4); pascal(4); pascal(4, "lower");
invpascal(4); invpascal(4, "lower"); helmert(4); helmert(3, full=True)
hadamard(4); hadamard(2, "float32"); dft(4); dft(3, "sqrtn")
dft(5, scale="n", dtype="complex64")
"""
STANDARD = """
cross(A[:, :3], D[:, :3]); cross(A[:3], D[:3], axis=0); diagonal(DD, offset=1)
trace(DD)
matrix_transpose(DD); matmul(A, B); outer(V, V); tensordot(A, D, axes=1); vecdot(C, C)
vecdot(A, D, axis=0); matrix_norm(DD); matrix_norm(DD, ord=2, keepdims=True)
vector_norm(A)
vector_norm(A, axis=0, ord=1); vector_norm(DD, axis=(0, 2), keepdims=True)
vector_norm(DD, ord=3, keepdims=True); eigvals(A + 0 * C); abs(eig(A).eigenvectors)
"""
SPECIAL = """
gammainc(P, Q); gammaincc(P, Q); gammainc(Q + 0.1, P); lax.igamma_grad_a(P, Q + 0.01)
betainc(P, Q + 0.5, U); betainc(Q, P, U); betainc(P[:2], jnp.inf, U[:2])
i0(Q); i0e(-Q); i1(Q); i1e(-5 * Q); zeta(P + 1.5, Q + 0.2); polygamma(2, Q + 0.3)
lax.polygamma(P - 0.5, Q + 1); bessel_jn(Q + 0.1, v=4); bernoulli(8); lax.zeta(P + 3, Q)
jax.grad(lambda p: gammainc(p, Q).sum() + gammaincc(Q + 1, p).sum())(P)
jax.grad(lambda q: (i0e(q) * i1e(q)).sum() + betainc(P, 2.0, q / 50).sum())(Q + 0.1)
jax.grad(lambda q: polygamma(1, q).sum())(Q + 0.3)
"""
PLACES = """
integrate.trapezoid(A, V, axis=0); cluster.vq.vq(A, D); cluster.vq.vq(V, A[0])
ndimage.map_coordinates(A, [4 * A, 3 * D], 1); ndimage.map_coordinates(A, [4 * A, D], 0)
ndimage.map_coordinates(A, [9 * A, 3 * D], 1, mode="reflect")
ndimage.map_coordinates(A, [9 * A, 3 * D], 1, mode="mirror")
ndimage.map_coordinates(A, [9 * A, 3 * D], 1, mode="wrap")
ndimage.map_coordinates(D.astype("int32"), [9 * A, 3 * D], 1, mode="nearest")
sparse.linalg.cg(D, V)
sparse.linalg.cg(lambda x: {"a": D @ x["a"]}, {"a": V}, tol=1e-6)
sparse.linalg.gmres(A, V, M=jnp.eye(4) / 2)[0]; sparse.linalg.bicgstab(D, V)[0]
jax.grad(lambda a: sparse.linalg.cg(a, V, tol=1e-7)[0].sum())(D)
jax.grad(lambda a: sparse.linalg.gmres(a, V, tol=1e-7)[0].sum())(A)
jax.vmap(lambda b: sparse.linalg.bicgstab(D, b, tol=1e-7)[0])(A)
optimize.minimize(lambda x: (x - V) @ D @ (x - V), 0 * V, method="BFGS").x
"""
PACKAGES = ["cluster", "cluster.vq", "integrate", "ndimage", "optimize", "sparse"]
PACKAGES += ["sparse.linalg"]
TABLES = {"scipy.special": SPECIAL, "scipy": PLACES}
TABLES |= {"scipy.linalg": LINALG, "numpy.linalg": STANDARD}


def calls(text):
    """The calls of a table, one to a semicolon or to a line."""
    parts = (c.strip() for line in text.split("\n") for c in line.split(";"))
    return [call for call in parts if call]


def evaluated(library, space):
    """The arrays that all calls of a table return, in one program."""
    module = importlib.import_module(f"{library.__name__}.{space}")
    names = {n: getattr(module, n) for n in dir(module) if not n.startswith("__")}
    for inside in PACKAGES:
        package = importlib.import_module(f"{library.__name__}.scipy.{inside}")
        names.setdefault(inside, package)
    names |= {"jax": library, "jnp": library.numpy, "lax": library.lax}

    def everything(known):
        return {c: eval(c, names | known) for c in calls(TABLES[space])}

    found = library.jit(everything)(KNOWN)
    return {call: library.tree.leaves(results) for call, results in found.items()}


@pytest.mark.parametrize("space", TABLES)
def test_calls_are_jax_s(space):
    ours, theirs = (evaluated(library, space) for library in (minijax, jax))
    wrong = []
    for call, wanted in theirs.items():
        assert len(ours[call]) == len(wanted), call
        for x, y in zip(map(np.asarray, ours[call]), map(np.asarray, wanted)):
            scale = np.abs(y).max(initial=1e-3, where=np.isfinite(y))
            same = (x.shape, x.dtype) == (y.shape, y.dtype)
            if not same or not np.allclose(x, y, 2e-5, 2e-5 * scale, equal_nan=True):
                wrong.append((call, x, y))
    assert not wrong, "\n".join(map(str, wrong))


SLOPES = """
scipy.linalg: cho_solve(cho_factor(x @ x.T + jnp.eye(4)), B)
scipy.linalg: solve(x @ x.T + jnp.eye(4), B, assume_a="pos")
scipy.linalg: lu_solve(lu_factor(x), B); scipy.linalg: solve_triangular(x, B)
scipy.linalg: expm(x); scipy.linalg: toeplitz(x[0], x[1])
scipy.linalg: polar(x, method="svd")[1]
numpy.linalg: abs(eigvals(x)); scipy.linalg: companion(x[0]) @ circulant(x[1])[:3]
"""


def test_slopes_are_jax_s():
    for line in calls(SLOPES):
        space, call = line.split(": ", 1)

        def slope(library, space=space, call=call):
            module = importlib.import_module(f"{library.__name__}.{space}")
            names = {n: getattr(module, n) for n in dir(module) if n[0] != "_"}
            names |= KNOWN | {"jnp": library.numpy}
            f = eval(f"lambda x: {call}", names)
            many = library.vmap(library.grad(lambda x: (f(x) ** 2).sum()))
            return np.asarray(library.jit(many)(np.stack([A, A.T])))

        ours, theirs = slope(minijax), slope(jax)
        scale = np.abs(theirs).max()
        np.testing.assert_allclose(ours, theirs, 2e-4, 2e-4 * scale, err_msg=call)


# Distributions: a scale that is none, and the types of results.

SHAPES = {"pareto": (0.5,), "gamma": (1.5,), "beta": (1.5, 2.5), "chi2": (2.5,)}
SHAPES |= {"t": (3.0,), "truncnorm": (-1.0, 2.0)}
SCALED = "norm cauchy laplace logistic expon uniform gumbel_l gumbel_r".split()
FUNCTIONS = "pdf logpdf pmf logpmf cdf logcdf sf logsf ppf isf".split()
PLACES_OF_SCALES = [(0.5, -1.0), (-1.0, -2.0), (-0.5, 2.0)]


def at_scales(library):
    """What each function says at locations and scales, in one program.

    Densities follow from their logarithms; of `exp(-log(-2))` XLA makes a product.
    """
    stats = importlib.import_module(f"{library.__name__}.scipy.stats")
    x = np.float32([-3, -1.5, -1, -0.5, 0, 0.25, 0.5, 1, 1.5, 2, 3.5])
    q = np.float32([-0.1, 0, 0.2, 0.5, 0.9, 1, 1.2])

    def everything(x, q):
        return {
            (name, key, *scale): getattr(getattr(stats, name), key)(
                q if key in ("ppf", "isf") else x, *SHAPES.get(name, ()), *scale
            )
            for name in [*SCALED, *SHAPES]
            for key in set(FUNCTIONS) - {"pdf"}
            if hasattr(getattr(jax.scipy.stats, name), key)
            for scale in PLACES_OF_SCALES
        }

    return everything(x, q) if library is minijax else library.jit(everything)(x, q)


def test_what_a_negative_scale_gives_is_jax_s():
    ours, theirs = at_scales(minijax), at_scales(jax)
    assert len(ours) == len(theirs) > 150
    for case, wanted in theirs.items():
        assert np.allclose(ours[case], wanted, 1e-4, 1e-5, equal_nan=True), case


NUMBERS = dict.fromkeys(SCALED, 0) | {name: len(SHAPES[name]) for name in SHAPES}
NUMBERS |= {"bernoulli": 1, "betabinom": 3, "binom": 2, "geom": 1, "nbinom": 2}
NUMBERS |= {"gennorm": 1, "poisson": 1, "vonmises": 1, "wrapcauchy": 1}
# What stays here as weak as its operands, or does not.
OTHER_TYPES = """
    norm.ppf norm.isf uniform.cdf pareto.logcdf gamma.sf gamma.logsf gennorm.cdf
    bernoulli.cdf bernoulli.ppf poisson.cdf
""".split()


@pytest.mark.parametrize("name", NUMBERS)
def test_distributions_have_jax_s_types_of_integers_and_numbers(name):
    many, numbers = np.int8([1, 2, 3]), [0.5] * NUMBERS[name]
    cases = [(many, *numbers), (0.5, *[many] * len(numbers)), (1, *numbers)]
    for key in FUNCTIONS:
        for args in cases:
            found = []
            for library in (minijax, jax):
                stats = importlib.import_module(f"{library.__name__}.scipy.stats")
                function = getattr(getattr(stats, name), key, None)
                if function is None:
                    break
                try:
                    value = library.eval_shape(function, *args)
                    found.append((value.dtype, value.weak_type))
                except TypeError:
                    found.append(TypeError)
            if len(found) == 2 and f"{name}.{key}" not in OTHER_TYPES:
                assert found[0] == found[1], (key, args)


REFUSED = """
stats.expon.pdf(1j); stats.uniform.cdf(1j); stats.gamma.pdf(1j, 1)
stats.vonmises.pdf(1j, 1); stats.bernoulli.pmf(1j, 1); lax.zeta(2, 3)
lax.zeta(N == 1, N == 1); lax.igamma(2, 3); lax.igammac(N, N); lax.polygamma(N, N)
lax.bessel_i0e(N); lax.bessel_i1e(2); lax.betainc(N, N, N); lax.igamma(C, C)
special.spence(jnp.float16(0.5)); special.spence(N); special.spence(1j)
special.spence(N == 1); jnp.matvec(V, V); jnp.matvec(A, 1.0)
lax.linalg.svd(A, algorithm=lax.linalg.SvdAlgorithm.JACOBI)
jnp.matmul(N, N, preferred_element_type="int8")
jnp.matmul(N, N, preferred_element_type="float16")
jnp.einsum("i,i", N, N, preferred_element_type="int16")
"""
KEPT = """
lax.igamma(2.0, V + 3); lax.zeta(V[0] + 2, 3.0); lax.bessel_i0e(2.0)
special.gammainc(0.5, 0.5); special.betainc(0.5, 0.5, 0.5); special.spence(0.5)
special.polygamma(1, 0.5); jnp.fft.fftn(1.0); jnp.fft.ifftn(V[0]); jnp.fft.rfftn(1)
jnp.fft.irfftn(V, axes=()); jnp.matmul(V, V, preferred_element_type="float16")
stats.beta.pdf(2.0, -1.0, 1.0)
lax.linalg.lu(A); lax.linalg.hessenberg(A); lax.linalg.tridiagonal(D)
"""


def outcome(library, call):
    spaces = {"special": ".scipy.special", "stats": ".scipy.stats"}
    spaces |= {"lax": ".lax", "jnp": ".numpy"}
    names = {
        name: importlib.import_module(library.__name__ + path)
        for name, path in spaces.items()
    }
    importlib.import_module(f"{library.__name__}.lax.linalg")
    return eval(call, names | KNOWN)


@pytest.mark.parametrize("call", calls(REFUSED))
def test_what_jax_refuses_is_refused(call):
    with pytest.raises((TypeError, ValueError, NotImplementedError)) as theirs:
        outcome(jax, call)
    with pytest.raises(theirs.type):
        outcome(minijax, call)


@pytest.mark.parametrize("call", calls(KEPT))
def test_containers_and_types_are_jax_s(call):
    ours, theirs = outcome(minijax, call), outcome(jax, call)
    assert type(ours) is type(theirs) or not isinstance(theirs, (list, tuple))
    pairs = list(zip(jax.tree.leaves(ours), jax.tree.leaves(theirs)))
    for x, y in pairs:
        assert (x.shape, x.dtype, x.weak_type) == (y.shape, y.dtype, y.weak_type)
        assert np.allclose(x, y, 1e-3, 1e-5, equal_nan=True)


# Grids.

GRIDS = """
R(g, v)(x); R(g, v, "nearest")(x); R(g, v)(x, "nearest"); R(g, v)(x, method="linear")
R(g, v.astype(int))(x[0]); R(g, v)((0.5, x[:, 1])); R(g, v.astype("float16"))(x)
R(g, v.astype("float16"), "nearest")(x); R(g, v + 1j)(x); R(g, v, fill_value=None)(x)
R(g, v, fill_value=0)(x); R(g, v, fill_value=1j)(x); R(g[:1], v)(x[:, 0])
R(g[:1], v)((x[:, 0],)); R(g, v)(jnp.ones((1, 3))); R(g, v)(jnp.ones(3))
R(g, v, "cubic")
R(g, v, bounds_error=True); R((*g, g[0]), v); R(g, v)([[0.5, 1]]); R(g, v.tolist())
R(g, v)(jnp.array([[jnp.nan, 1.0]])); R(g, v)(x, "cubic")
R(g[:1], v[:, 0])(x[..., None])
R((g[0].astype(int), g[1]), v)(x.astype(int)); R((g[0][:1], g[1]), v[:1])(x)
R(g, jnp.stack([v, v * v], -1))(x.reshape(1, 2, 2, 2)); R(g[:1], v)(0.5)
jax.jit(lambda r, x: r(x))(R(g, v), x); jax.vmap(R(g, v))(x)
jax.vmap(lambda v: R(g, v)(x))(jnp.stack([v, 2 * v]))
jax.grad(lambda v, x: (R(g, v)(x) ** 2)[:2].sum(), (0, 1))(v, x)
jax.grad(lambda g: R(g, v)(x)[:2].sum())(g); jax.hessian(lambda x: R(g, v)(x)[0])(x)
jax.tree.leaves(R(g, v)); jax.tree.map(lambda a: 2 * a, R(g, v))(2 * x)
"""


@pytest.mark.parametrize("call", calls(GRIDS))
def test_grids_are_jax_s(call):
    found = []
    for library in (minijax, jax):
        module = importlib.import_module(f"{library.__name__}.scipy.interpolate")
        jnp = library.numpy
        names = {"R": module.RegularGridInterpolator, "jnp": jnp, "jax": library}
        names |= {"g": (jnp.array([0.0, 1, 3]), jnp.array([0.0, 2]))}
        names |= {"x": jnp.array([[0.5, 1], [2, 2], [4, 1], [1, 0.5]])}
        names |= {"v": jnp.arange(6.0).reshape(3, 2) ** 2}
        try:
            found.append(jax.tree.leaves(eval(call, names)))
        except Exception as error:
            found.append(type(error))
    if isinstance(found[1], type):
        assert found[0] is found[1]
        return
    assert len(found[0]) == len(found[1])
    for ours, theirs in zip(*found):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        assert ours.weak_type == theirs.weak_type
        assert np.allclose(ours, theirs, 1e-3, 1e-6, equal_nan=True)
