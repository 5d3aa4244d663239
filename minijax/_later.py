# Made from chapters/01_interception_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Public names of JAX that chapters to come will bring, by the topic of the chapter.

For each topic, and each package of names, the names. What will never be there is
not listed.
"""

LATER = {
    "windows and convolution": {
        "minijax.lax": """
            ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers conv
            conv_dimension_numbers conv_general_dilated conv_general_dilated_local
            conv_general_dilated_p conv_general_dilated_patches
            conv_general_permutations conv_general_shape_tuple conv_shape_tuple
            conv_transpose conv_transpose_shape_tuple conv_with_general_padding
            padtype_to_pads reduce_window reduce_window_max_p reduce_window_min_p
            reduce_window_p reduce_window_shape_tuple reduce_window_sum_p
            select_and_gather_add_p select_and_scatter_add_p select_and_scatter_p
        """,
        "minijax.numpy": "convolve correlate",
    },
    "linear algebra and Fourier transforms": {
        "minijax.lax": "FftType fft fft_p",
        "minijax.lax.linalg": """
            EigImplementation cholesky_update cholesky_update_p eig eig_p hessenberg
            hessenberg_p householder_product householder_product_p ormqr ormqr_p qdwh
            schur schur_p symmetric_product symmetric_product_p tridiagonal
            tridiagonal_p tridiagonal_solve tridiagonal_solve_p
        """,
        "minijax.numpy": "fft poly polyfit roots",
        "minijax.numpy.linalg": """
            cross diagonal eig eigvals matmul matrix_norm matrix_transpose outer
            tensordot trace vecdot vector_norm
        """,
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
            bessel_i0e bessel_i0e_p bessel_i1e bessel_i1e_p betainc igamma igamma_grad_a
            igamma_grad_a_p igamma_p igammac igammac_p mulhi mulhi_p polygamma
            polygamma_p ragged_dot ragged_dot_general reduce reduce_p
            regularized_incomplete_beta_p split split_p stack stack_p tile tile_p
            unstack unstack_p zeta zeta_p
        """,
        "minijax.numpy": "i0 kaiser polydiv trim_zeros",
        "minijax.scipy": """
            cluster fft integrate interpolate linalg ndimage signal sparse stats
        """,
        "minijax.scipy.special": """
            bernoulli bessel_jn betainc dawsn erfcx exp1 expi expn fresnel gammainc
            gammaincc hyp1f1 hyp2f1 i0 i0e i1 i1e owens_t polygamma sici spence
            sph_harm_y wofz zeta
        """,
    },
    "many devices": {
        "minijax": """
            NamedSharding P distributed live_arrays make_array_from_callback
            make_array_from_process_local_data make_array_from_single_device_arrays
            make_mesh pmap reshard set_mesh shard_map smap
        """,
        "minijax.lax": """
            pbroadcast pcast platform_dependent precv psend pshuffle pswapaxes
            ragged_all_to_all ragged_all_to_all_p sharding_constraint_p
            with_sharding_constraint
        """,
        "minijax.sharding": """
            AbstractDevice AbstractMesh AxisType Mesh NamedSharding
            PartitionSpec auto_axes explicit_axes get_abstract_mesh get_mesh
            make_single_device_sharding reshard set_mesh use_abstract_mesh
        """,
    },
}
