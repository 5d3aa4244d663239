# Made from chapters/01_interception_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Public names of JAX that chapters to come will bring, by the topic of the chapter.

For each topic, and each package of names, the names. What will never be there is
not listed.
"""

LATER = {
    "linear algebra and Fourier transforms": {
        "minijax.lax.linalg": """
            cholesky_update cholesky_update_p hessenberg hessenberg_p
            householder_product householder_product_p ormqr ormqr_p qdwh schur schur_p
            symmetric_product symmetric_product_p tridiagonal tridiagonal_p
            tridiagonal_solve tridiagonal_solve_p
        """,
        "minijax.numpy": "poly polyfit roots",
    },
    "random numbers": {
        "minijax.lax": """
            RandomAlgorithm rng_bit_generator rng_bit_generator_p rng_uniform
            rng_uniform_p
        """,
    },
    "special functions, statistics and images": {
        "minijax": "image named_call named_scope",
        "minijax.lax": """
            bessel_i0e_p bessel_i1e_p igamma_grad_a_p igamma_p igammac_p mulhi mulhi_p
            polygamma_p ragged_dot ragged_dot_general reduce reduce_p
            regularized_incomplete_beta_p select_and_scatter_p split split_p stack
            stack_p tile tile_p unstack unstack_p zeta_p
        """,
        "minijax.numpy": "i0 kaiser polydiv trim_zeros",
        "minijax.scipy": "interpolate",
        "minijax.scipy.signal": "csd detrend fftconvolve istft stft welch",
        "minijax.scipy.special": """
            dawsn erfcx exp1 expi expn fresnel hyp1f1 hyp2f1 owens_t sici spence
            sph_harm_y wofz
        """,
    },
    "many devices": {
        "minijax": """
            live_arrays reshard smap
        """,
        "minijax.lax": """
            platform_dependent precv psend
            ragged_all_to_all ragged_all_to_all_p
        """,
        "minijax.sharding": """
            auto_axes explicit_axes make_single_device_sharding reshard
        """,
    },
}
