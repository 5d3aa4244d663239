"""Public names by the modules which define them; modules which fill tables."""

# Made from the chapters by `make chapters`; edit them, not this file.

# For each module that users import: the modules that have its names.
NAMES: dict[str, dict[str, str]] = {
    "minijax": {
        "minijax.arrays.array": "typeof",
        "minijax.arrays.config": """
            allow_f16_reductions array_garbage_collection_guard auto_pcast
            check_tracer_leaks checking_leaks debug_key_reuse default_device
            default_matmul_precision default_prng_impl enable_checks enable_custom_prng
            ensure_compile_time_eval jax2tf_associative_scan_reductions legacy_prng_key
            log_compiles no_execution no_tracing numpy_dtype_promotion
            numpy_rank_promotion remove_size_one_mesh_axis_from_type softmax_custom_jvp
            thread_guard threefry_partitionable transfer_guard
            transfer_guard_device_to_device transfer_guard_device_to_host
            transfer_guard_host_to_device
        """,
        "minijax.arrays.devices": "Device default_backend devices",
        "minijax.arrays.dtypes": "config enable_x64",
        "minijax.arrays.interchange": "Shard",
        "minijax.arrays.transfer": """
            device_count host_count host_id host_ids local_device_count local_devices
            process_count process_index process_indices
        """,
        "minijax.batching.vmap": "vmap",
        "minijax.callbacks.callback": "pure_callback",
        "minijax.callbacks.debugger": "debug_infs debug_nans",
        "minijax.callbacks.host_calls": "effects_barrier",
        "minijax.compat.core": "float0",
        "minijax.core": "Array",
        "minijax.custom_derivatives.custom_jvp_vjp": "custom_jvp custom_vjp",
        "minijax.custom_derivatives.linear_solves": "closure_convert custom_gradient",
        "minijax.indexing.indexer": "ds",
        "minijax.indexing.refs": "Ref ad empty_ref free_ref freeze new_ref",
        "minijax.jaxprs.jaxpr": "eval_shape make_jaxpr",
        "minijax.jaxprs.types": "ShapeDtypeStruct",
        "minijax.jitting.api": """
            clear_caches disable_jit explain_cache_misses jit live_arrays
        """,
        "minijax.lax.composites": "fwd_and_bwd named_call named_scope",
        "minijax.linearization.linearize": "linearize",
        "minijax.pytrees.api_util": "jvp",
        "minijax.pytrees.tree_operations": """
            block_until_ready copy_to_host_async device_get device_put
        """,
        "minijax.rematerialization.caching": "make_user_context",
        "minijax.rematerialization.policies": "checkpoint_policies remat",
        "minijax.rematerialization.remat": "checkpoint",
        "minijax.reverse_mode.backward_pass": "grad value_and_grad vjp",
        "minijax.reverse_mode.jacobians": "hessian jacfwd jacobian jacrev",
        "minijax.reverse_mode.transpose_rules": "linear_transpose",
        "minijax.sharding.named_sharding": "P make_mesh",
        "minijax.sharding.pmap": "pmap shard_map",
        "minijax.sharding.sharded_arrays": """
            make_array_from_callback make_array_from_process_local_data
            make_array_from_single_device_arrays
        """,
        "minijax.sharding.single_axis": "smap",
        "minijax.spmd.programs": "NamedSharding reshard set_mesh",
        "minijax.threads.environment": "print_environment_info",
    },
    "minijax.__main__": {},
    "minijax.ad_checkpoint": {
        "minijax.rematerialization.jaxpr_transforms": "Offloadable Recompute Saveable",
        "minijax.rematerialization.policies": """
            checkpoint_name checkpoint_policies print_saved_residuals
        """,
    },
    "minijax.api_util": {
        "minijax.compat.linear_util": """
            argnums_partial debug_info donation_vector flatten_axes flatten_fun
            flatten_fun_nokwargs rebase_donate_argnums safe_map shaped_abstractify
        """,
    },
    "minijax.as_jax": {
        "minijax.as_jax.aliases": "install uninstall",
        "minijax.as_jax.plugin": """
            pytest_addoption pytest_plugin_registered pytest_runtest_logreport
        """,
    },
    "minijax.core": {
        "minijax.compat.core": """
            AbstractValue Atom ParamDict ShapedArray Value ensure_compile_time_eval
            eval_context eval_jaxpr max_dim min_dim
        """,
    },
    "minijax.custom_batching": {
        "minijax.custom_derivatives.custom_vmap": "custom_vmap",
        "minijax.scans.evaluation": "sequential_vmap",
    },
    "minijax.custom_derivatives": {},
    "minijax.debug": {},
    "minijax.distributed": {
        "minijax.distributed.processes": "initialize is_initialized shutdown",
    },
    "minijax.dlpack": {
        "minijax.arrays.transfer": "from_dlpack is_supported_dtype",
    },
    "minijax.dtypes": {
        "minijax.compat.core": """
            TypePromotionError bfloat16 canonicalize_dtype extended finfo float0 iinfo
            issubdtype itemsize_bits result_type scalar_type_of
        """,
        "minijax.prng.random_primitives": "prng_key",
    },
    "minijax.errors": {},
    "minijax.example_libraries": {},
    "minijax.example_libraries.optimizers": {
        "minijax.training.optimizers": """
            Optimizer OptimizerState adam constant make_schedule momentum optimizer sgd
        """,
        "minijax.training.schedules": """
            JoinPoint adagrad adamax clip_grads exponential_decay inverse_time_decay
            l2_norm nesterov pack_optimizer_state piecewise_constant polynomial_decay
            rmsprop rmsprop_momentum sm3 unpack_optimizer_state
        """,
    },
    "minijax.example_libraries.stax": {
        "minijax.training.layers": """
            AvgPool BatchNorm Conv Conv1DTranspose ConvTranspose Dropout Elu Exp
            FanInConcat FanInSum FanOut Flatten Gelu GeneralConv GeneralConvTranspose
            Identity LeakyRelu LogSoftmax MaxPool Relu Selu Sigmoid Softmax Softplus
            SumPool Tanh elementwise
        """,
        "minijax.training.optimizers": "Dense parallel serial shape_dependent",
        "minijax.training.schedules": "glorot logsoftmax randn",
    },
    "minijax.experimental": {
        "minijax.autojitting.autojit": "autojit",
        "minijax.callbacks.callback": "io_callback",
    },
    "minijax.experimental.checkify": {
        "minijax.experimental.checkify.checking": """
            Error ErrorCategory JaxRuntimeError all_checks automatic_checks check
            check_error checkify debug_check div_checks float_checks index_checks
            init_error nan_checks user_checks
        """,
    },
    "minijax.experimental.jet": {
        "minijax.experimental.jet.taylor_mode": "fact jet",
    },
    "minijax.experimental.layout": {
        "minijax.jitting.layouts": "Format Layout with_layout_constraint",
    },
    "minijax.experimental.mesh_utils": {
        "minijax.sharding.deprecated": "create_device_mesh create_hybrid_device_mesh",
    },
    "minijax.experimental.multihost_utils": {
        "minijax.distributed.multihost": """
            assert_equal broadcast_one_to_all global_array_to_host_local_array
            host_local_array_to_global_array process_allgather sync_global_devices
        """,
    },
    "minijax.experimental.ode": {
        "minijax.experimental.ode.runge_kutta": "odeint",
    },
    "minijax.experimental.pjit": {
        "minijax.sharding.deprecated": "pjit",
    },
    "minijax.experimental.shard_map": {
        "minijax.sharding.deprecated": "shard_map",
    },
    "minijax.experimental.sparse": {
        "minijax.experimental.sparse.coordinates": """
            BCOO BCSR COO CSC CSR JAXSparse bcoo_fromdense bcoo_todense sparsify todense
        """,
    },
    "minijax.export": {
        "minijax.stablehlo.exported": "Exported default_export_platform export",
    },
    "minijax.extend": {},
    "minijax.extend.arguments": {
        "minijax.arrays.dtypes": "check_dtype warn_user",
        "minijax.arrays.interchange": "check_room promised",
        "minijax.arrays.numerics": """
            canonicalize_axis canonicalize_int_tuple check_kind check_rank
            dim_size_along operator_index
        """,
        "minijax.arrays.out_sharding": "PLACED_CODE place_result with_out_sharding",
        "minijax.lax.reductions": "check_arraylike is_arraylike",
        "minijax.numpy.operators": "concrete_numpy",
        "minijax.numpy.shapes": "as_arraylike canonicalize_shape",
        "minijax.pytrees.api_util": "flatten_like",
    },
    "minijax.extend.backend": {
        "minijax.compat.core": "backends clear_backends get_backend get_default_device",
    },
    "minijax.extend.core": {
        "minijax.compat.core": """
            DropVar Effect Effects InconclusiveDimensionOperation Primitive RuleView
            TraceTag array_types concrete_or_error find_top_trace gensym
            get_opaque_trace_state mapped_aval new_jaxpr_eqn no_effects
            nonempty_axis_env_DO_NOT_USE primal_dtype_to_tangent_dtype set_current_trace
            take_current_trace unmapped_aval unsafe_am_i_under_a_jit_DO_NOT_USE
            unsafe_am_i_under_a_vmap_DO_NOT_USE unsafe_get_axis_names_DO_NOT_USE
            valid_jaxtype
        """,
        "minijax.jaxprs.checker": "JaxprTypeError check_jaxpr",
        "minijax.jaxprs.jaxpr": "ClosedJaxpr Jaxpr JaxprEqn Literal Var jaxpr_as_fun",
        "minijax.jaxprs.pretty_printer": "jaxprs_in_params subjaxprs",
    },
    "minijax.extend.core.primitives": {
        "minijax.collectives.derived": "empty2_p sharding_constraint_p",
        "minijax.compat.core": """
            abs_p acos_p acosh_p add_jaxvals_p add_p all_gather_p all_to_all_p and_p
            argmax_p argmin_p asin_p asinh_p atan2_p atan_p atanh_p axis_index_p
            bitcast_convert_type_p broadcast_in_dim_p call_p cbrt_p ceil_p clamp_p
            closed_call_p clz_p complex_p concatenate_p conj_p convert_element_type_p
            copy_p cos_p cosh_p cumlogsumexp_p cummax_p cummin_p cumprod_p cumsum_p
            custom_jvp_call_p custom_lin_p custom_vjp_call_p digamma_p div_p
            dot_general_p eq_p erf_inv_p erf_p erfc_p exp2_p exp_p expm1_p floor_p ge_p
            gt_p imag_p integer_pow_p iota_p is_finite_p jit_p le_p lgamma_p
            linear_solve_p log1p_p log_p logistic_p lt_p max_p min_p mul_p name_p ne_p
            neg_p nextafter_p not_p or_p pad_p pmax_p pmin_p population_count_p pow_p
            ppermute_p psum_p real_p reduce_and_p reduce_max_p reduce_min_p reduce_or_p
            reduce_precision_p reduce_prod_p reduce_sum_p reduce_xor_p rem_p remat_p
            reshape_p rev_p round_p rsqrt_p select_n_p shift_left_p
            shift_right_arithmetic_p shift_right_logical_p sign_p sin_p sinh_p slice_p
            sqrt_p square_p squeeze_p stop_gradient_p sub_p tan_p tanh_p transpose_p
            xor_p
        """,
        "minijax.compat.library_primitives": """
            cholesky_p conv_general_dilated_p device_put_p dynamic_slice_p
            dynamic_update_slice_p eig_p eigh_p fft_p gather_p hessenberg_p
            householder_product_p lu_p qr_p random_gamma_p reduce_window_max_p
            reduce_window_min_p reduce_window_p reduce_window_sum_p scatter_add_p
            scatter_max_p scatter_min_p scatter_mul_p scatter_p schur_p sort_p svd_p
            top_k_p triangular_solve_p tridiagonal_p tridiagonal_solve_p
        """,
        "minijax.prng.random_primitives": """
            random_bits_p random_fold_in_p random_seed_p random_split_p
        """,
        "minijax.scans.evaluation": "cond_p scan_p while_p",
    },
    "minijax.extend.dtypes": {
        "minijax.arrays.dtypes": "dtype_kind dtype_name is_inexact",
        "minijax.arrays.numerics": "complex_dtype_of real_dtype_of",
        "minijax.lax.reductions": "max_of_dtype min_of_dtype to_inexact_dtype",
    },
    "minijax.extend.linear_util": {
        "minijax.compat.linear_util": """
            StoreException WrappedFun cache merge_linear_aux transformation
            transformation2 transformation_with_aux transformation_with_aux2 wrap_init
        """,
    },
    "minijax.extend.promotion": {
        "minijax.arrays.config": "promoting",
        "minijax.lax.arithmetic": "astype promote_dtypes promote_shapes",
        "minijax.lax.reductions": "promote_dtypes_inexact promote_dtypes_numeric",
    },
    "minijax.extend.random": {
        "minijax.prng.random_primitives": """
            define_prng_impl random_seed seed_with_impl threefry_2x32 threefry_prng_impl
        """,
        "minijax.random.bit_generators": "rbg_prng_impl unsafe_rbg_prng_impl",
    },
    "minijax.extend.rules": {
        "minijax.arrays.array": "shape_rules",
        "minijax.batching.vmap": "vmap_rules",
        "minijax.custom_derivatives.custom_jvp_vjp": "callee_rules",
        "minijax.forward_mode.jvp": "jvp_rules",
        "minijax.kernels.lowering": "kernel_rules",
        "minijax.python_backend.codegen": "python_rules",
        "minijax.python_backend.source": "write_evaluation",
        "minijax.rematerialization.jaxpr_transforms": "effect_rules",
        "minijax.reverse_mode.backward_pass": "transpose_rules",
    },
    "minijax.extend.source_info_util": {
        "minijax.compat.core": "current new_source_info register_exclusion summarize",
    },
    "minijax.ffi": {},
    "minijax.flatten_util": {
        "minijax.pytrees.tree_operations": "ravel_pytree",
    },
    "minijax.image": {
        "minijax.image.resampling": "ResizeMethod resize scale_and_translate",
    },
    "minijax.interpreters": {},
    "minijax.interpreters.ad": {},
    "minijax.interpreters.batching": {},
    "minijax.interpreters.mlir": {},
    "minijax.interpreters.partial_eval": {},
    "minijax.interpreters.xla": {},
    "minijax.lax": {
        "minijax.arrays.accuracy": "AccuracyMode Tolerance",
        "minijax.arrays.numerics": "broadcast_shapes",
        "minijax.batching.collectives": """
            all_gather all_gather_p all_to_all all_to_all_p axis_index axis_index_p
            axis_size pmax pmax_p pmean pmin pmin_p ppermute ppermute_p psum psum_p
            psum_scatter reduce_scatter_p
        """,
        "minijax.collectives.derived": """
            pbroadcast pcast pshuffle pswapaxes ragged_all_to_all
        """,
        "minijax.control_flow.conditionals": "cond cond_p switch",
        "minijax.control_flow.while_loops": "while_loop while_p",
        "minijax.custom_derivatives.custom_jvp_vjp": "stop_gradient stop_gradient_p",
        "minijax.custom_derivatives.linear_solves": """
            custom_linear_solve custom_root linear_solve_p
        """,
        "minijax.distributions.inversion": "random_gamma_grad",
        "minijax.indexing.dimension_numbers": """
            GatherDimensionNumbers GatherScatterMode ScatterDimensionNumbers
        """,
        "minijax.indexing.dynamic_slices": """
            dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_slice_p
            dynamic_update_index_in_dim dynamic_update_slice dynamic_update_slice_in_dim
            dynamic_update_slice_p
        """,
        "minijax.indexing.gather_scatter": """
            gather gather_p scatter scatter_add scatter_add_p scatter_p
        """,
        "minijax.indexing.scatter_variants": """
            scatter_apply scatter_max scatter_max_p scatter_min scatter_min_p
            scatter_mul scatter_mul_p scatter_sub scatter_sub_p
        """,
        "minijax.lax.arithmetic": """
            add add_p broadcast_in_dim broadcast_in_dim_p broadcast_to_rank
            convert_element_type_p lt lt_p mul mul_p reduce_sum reduce_sum_p sub sub_p
            tanh tanh_p
        """,
        "minijax.lax.composites": """
            after_all broadcast_like composite create_token device_put_p dtype empty
            fft_p mulhi platform_dependent ragged_dot reduce scan_p shape_as_value split
            stack tile unstack
        """,
        "minijax.lax.elementwise": """
            RoundingMethod abs abs_p acos acos_p acosh acosh_p add_any_p and_p asin
            asin_p asinh asinh_p atan atan2 atan2_p atan_p atanh atanh_p bitwise_and
            bitwise_not bitwise_or bitwise_xor cbrt cbrt_p ceil ceil_p clamp clamp_p clz
            clz_p complex complex_p conj conj_p cos cos_p cosh cosh_p digamma digamma_p
            div div_p eq eq_p erf erf_inv erf_inv_p erf_p erfc erfc_p exp exp2 exp2_p
            exp_p expm1 expm1_p floor floor_p ge ge_p gt gt_p imag imag_p integer_pow
            integer_pow_p is_finite is_finite_p le le_p lgamma lgamma_p log log1p
            log1p_p log_p logistic logistic_p max max_p min min_p ne ne_p neg neg_p
            nextafter nextafter_p not_p or_p population_count population_count_p pow
            pow_p real real_p reciprocal reduce_precision reduce_precision_p rem rem_p
            round round_p rsqrt rsqrt_p select select_n select_n_p shift_left
            shift_left_p shift_right_arithmetic shift_right_arithmetic_p
            shift_right_logical shift_right_logical_p sign sign_p sin sin_p sinh sinh_p
            sqrt sqrt_p square square_p tan tan_p xor_p
        """,
        "minijax.lax.ragged_products": """
            DotDimensionNumbers PrecisionLike RaggedDotDimensionNumbers index_take
            ragged_dot_general
        """,
        "minijax.lax.reductions": """
            DotAlgorithm DotAlgorithmPreset Precision argmax argmax_p argmin argmin_p
            batch_matmul cumlogsumexp cumlogsumexp_p cummax cummax_p cummin cummin_p
            cumprod cumprod_p cumsum cumsum_p dot dot_general dot_general_p reduce_and
            reduce_and_p reduce_max reduce_max_p reduce_min reduce_min_p reduce_or
            reduce_or_p reduce_prod reduce_prod_p reduce_xor reduce_xor_p
        """,
        "minijax.lax.shapes": """
            bitcast_convert_type bitcast_convert_type_p broadcast broadcasted_iota
            collapse concatenate concatenate_p convert_element_type copy_p expand_dims
            full full_like index_in_dim iota iota_p pad pad_p reshape reshape_p rev
            rev_p slice slice_in_dim slice_p squeeze squeeze_p transpose transpose_p
        """,
        "minijax.numpy.fft.primitive": "FftType fft",
        "minijax.random.bit_generators": """
            RandomAlgorithm rng_bit_generator rng_uniform
        """,
        "minijax.rematerialization.jaxpr_transforms": """
            optimization_barrier optimization_barrier_p
        """,
        "minijax.scans.loops": "associative_scan fori_loop map scan",
        "minijax.scipy.special.integrals": """
            bessel_i0e bessel_i1e betainc igamma igamma_grad_a igammac polygamma zeta
        """,
        "minijax.sorting.sort": "sort sort_key_val sort_p",
        "minijax.sorting.top_k": "approx_max_k approx_min_k top_k top_k_p",
        "minijax.spmd.partitioner": "sharding_constraint_p",
        "minijax.spmd.programs": "with_sharding_constraint",
        "minijax.stablehlo.exported": "dce_sink dce_sink_p stage",
        "minijax.windows.convolution": "conv_general_dilated conv_general_dilated_p",
        "minijax.windows.convolution_forms": """
            conv conv_general_dilated_local conv_general_dilated_patches conv_transpose
            conv_with_general_padding
        """,
        "minijax.windows.geometry": """
            ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers
            conv_dimension_numbers conv_general_permutations conv_general_shape_tuple
            conv_shape_tuple conv_transpose_shape_tuple padtype_to_pads
            reduce_window_shape_tuple
        """,
        "minijax.windows.reduce_window": """
            reduce_window reduce_window_max_p reduce_window_min_p reduce_window_p
            reduce_window_sum_p select_and_gather_add_p select_and_scatter_add_p
        """,
    },
    "minijax.lax.linalg": {
        "minijax.linear_algebra.factorizations": """
            EighImplementation SvdAlgorithm cholesky cholesky_p eigh eigh_p lu lu_p
            lu_pivots_to_permutation lu_pivots_to_permutation_p qr qr_p svd svd_p
            triangular_solve triangular_solve_p
        """,
        "minijax.linear_algebra.lax_linalg": """
            EigImplementation cholesky_update cholesky_update_p eig eig_p hessenberg
            hessenberg_p householder_product householder_product_p ormqr ormqr_p qdwh
            schur schur_p symmetric_product symmetric_product_p tridiagonal
            tridiagonal_p tridiagonal_solve tridiagonal_solve_p
        """,
    },
    "minijax.lib": {},
    "minijax.memory": {
        "minijax.memory.spaces": "Space",
    },
    "minijax.monitoring": {},
    "minijax.nn": {
        "minijax.nn.attention": "dot_product_attention scaled_matmul",
        "minijax.nn.functions": """
            celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity
            leaky_relu log1mexp log_sigmoid log_softmax logmeanexp logsumexp mish
            one_hot relu relu6 selu sigmoid silu soft_sign softmax softplus sparse_plus
            sparse_sigmoid squareplus standardize swish tanh
        """,
    },
    "minijax.nn.initializers": {
        "minijax.nn.weight_initializers": """
            Initializer constant delta_orthogonal glorot_normal glorot_uniform he_normal
            he_uniform kaiming_normal kaiming_uniform lecun_normal lecun_uniform normal
            ones orthogonal truncated_normal uniform variance_scaling xavier_normal
            xavier_uniform zeros
        """,
    },
    "minijax.numpy": {
        "minijax.numpy.array_api": "can_cast isdtype iterable",
        "minijax.numpy.array_creation": """
            array asarray astype copy diag diag_indices diagonal empty empty_like eye
            full full_like identity meshgrid ones ones_like tri tril triu zeros
            zeros_like
        """,
        "minijax.numpy.array_methods": """
            add bitwise_and bitwise_invert bitwise_not bitwise_or bitwise_xor divide
            equal exp greater greater_equal invert less less_equal maximum multiply
            negative not_equal subtract tanh true_divide where
        """,
        "minijax.numpy.einstein_sums": "einsum einsum_path",
        "minijax.numpy.fft.primitive": "convolve correlate",
        "minijax.numpy.functional": """
            apply_along_axis apply_over_axes fromfunction gcd lcm piecewise vectorize
        """,
        "minijax.numpy.histograms": """
            histogram histogram2d histogram_bin_edges histogramdd intersect1d setdiff1d
            setxor1d union1d unique_all unique_counts unique_inverse unique_values
        """,
        "minijax.numpy.index_tricks": """
            c_ diag_indices_from fill_diagonal index_exp indices ix_ mask_indices mgrid
            ogrid r_ ravel_multi_index s_ tril_indices tril_indices_from triu_indices
            triu_indices_from unravel_index
        """,
        "minijax.numpy.indexing": """
            argwhere bincount compress extract flatnonzero nonzero place put
            put_along_axis take take_along_axis
        """,
        "minijax.numpy.joining": """
            append array_split concatenate flip hstack pad repeat split stack tile
            vstack
        """,
        "minijax.numpy.polynomials": "i0 kaiser poly polydiv polyfit roots trim_zeros",
        "minijax.numpy.quantiles": """
            median nanmedian nanpercentile nanquantile percentile quantile
        """,
        "minijax.numpy.ranges": "arange bartlett blackman hamming hanning linspace",
        "minijax.numpy.rearrangements": """
            block column_stack concat delete diagflat dsplit dstack fliplr flipud hsplit
            insert kron permute_dims resize roll rollaxis rot90 unstack vsplit
        """,
        "minijax.numpy.reductions": """
            all amax amin any argmax argmin count_nonzero cumprod cumsum max mean min
            prod ptp std sum trace var
        """,
        "minijax.numpy.scalar_types": """
            ComplexWarning array_repr array_str bfloat16 bool bool_ cdouble character
            complex128 complex64 complex_ complexfloating csingle double dtype e
            euler_gamma finfo flexible float16 float32 float4_e2m1fn float64
            float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz
            float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu
            float_ floating from_dlpack frombuffer fromfile fromiter fromstring generic
            get_printoptions iinfo inexact inf int1 int16 int2 int32 int4 int64 int8
            int_ integer iscomplexobj isrealobj isscalar issubdtype load nan ndarray
            ndim newaxis number object_ pi printoptions promote_types result_type save
            savez set_printoptions shape signedinteger single size uint uint1 uint16
            uint2 uint32 uint4 uint64 uint8 unsignedinteger
        """,
        "minijax.numpy.selection": """
            bitwise_count choose interp isin packbits select spacing unpackbits unwrap
        """,
        "minijax.numpy.setops": "unique",
        "minijax.numpy.shapes": """
            atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes
            broadcast_to expand_dims matrix_transpose moveaxis ravel reshape squeeze
            swapaxes transpose
        """,
        "minijax.numpy.sorting": """
            argpartition argsort digitize lexsort partition searchsorted sort
            sort_complex
        """,
        "minijax.numpy.statistics": """
            average corrcoef cov cross cumulative_prod cumulative_sum diff ediff1d
            geomspace gradient logspace matvec nanargmax nanargmin nancumprod nancumsum
            nanmax nanmean nanmin nanprod nanstd nansum nanvar polyadd polyder polyint
            polymul polysub polyval trapezoid vander vecdot vecmat
        """,
        "minijax.numpy.tensor_contractions": "dot inner matmul outer tensordot vdot",
        "minijax.numpy.ufunc_objects": "frompyfunc ufunc",
        "minijax.numpy.ufuncs": """
            abs absolute acos acosh allclose angle arccos arccosh arcsin arcsinh arctan
            arctan2 arctanh around array_equal array_equiv asin asinh atan atan2 atanh
            bitwise_left_shift bitwise_right_shift cbrt ceil clip conj conjugate
            copysign cos cosh deg2rad degrees divmod exp2 expm1 fabs float_power floor
            floor_divide fmax fmin fmod frexp heaviside hypot imag isclose iscomplex
            isfinite isinf isnan isneginf isposinf isreal ldexp left_shift log log10
            log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or
            logical_xor minimum mod modf nan_to_num nextafter positive pow power rad2deg
            radians real reciprocal remainder right_shift rint round sign signbit sin
            sinc sinh sqrt square tan trunc
        """,
    },
    "minijax.numpy.fft": {
        "minijax.numpy.fft.transforms": """
            fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft
            irfft2 irfftn rfft rfft2 rfftfreq rfftn
        """,
    },
    "minijax.numpy.linalg": {
        "minijax.linear_algebra.numpy_linalg": """
            cholesky cond det eigh eigvalsh inv lstsq matrix_power matrix_rank multi_dot
            pinv qr slogdet solve svd svdvals tensorinv tensorsolve
        """,
        "minijax.numpy.linalg.standard": """
            cross diagonal eig eigvals matmul matrix_norm matrix_transpose outer
            tensordot trace vecdot vector_norm
        """,
        "minijax.numpy.tensor_contractions": "norm",
    },
    "minijax.ops": {
        "minijax.numpy.indexing": "segment_max segment_min segment_prod segment_sum",
    },
    "minijax.profiler": {
        "minijax.profiler.spans": """
            ProfileOptions StepTraceAnnotation TraceAnnotation annotate_function
            start_trace stop_trace trace
        """,
    },
    "minijax.random": {
        "minijax.distributions.continuous": """
            ball beta chisquare dirichlet double_sided_maxwell f generalized_normal
            lognormal maxwell multivariate_normal orthogonal pareto rayleigh t
            triangular truncated_normal wald weibull_min
        """,
        "minijax.distributions.discrete": """
            bernoulli binomial categorical choice geometric multinomial permutation
            poisson rademacher randint
        """,
        "minijax.distributions.inversion": """
            cauchy exponential gamma gumbel key_dtype laplace loggamma logistic
            random_gamma_p
        """,
        "minijax.prng.keys": """
            PRNGKey bits clone fold_in key key_data key_impl normal split uniform
            wrap_key_data
        """,
    },
    "minijax.ref": {
        "minijax.indexing.refs": """
            Ref addupdate empty_ref free_ref freeze get new_ref set swap
        """,
    },
    "minijax.scipy": {},
    "minijax.scipy.cluster": {},
    "minijax.scipy.cluster.vq": {
        "minijax.scipy.interpolation": "vq",
    },
    "minijax.scipy.fft": {
        "minijax.numpy.fft.transforms": "dct dctn idct idctn",
    },
    "minijax.scipy.integrate": {
        "minijax.scipy.solvers": "trapezoid",
    },
    "minijax.scipy.interpolate": {
        "minijax.scipy.interpolation": "RegularGridInterpolator",
    },
    "minijax.scipy.linalg": {
        "minijax.scipy.linalg.decompositions": """
            cho_factor cho_solve cholesky det eigh expm expm_frechet inv lu lu_factor
            lu_solve polar qr solve solve_triangular svd
        """,
        "minijax.scipy.linalg.matrix_functions": """
            eigh_tridiagonal funm hessenberg qr_multiply rsf2csf schur solve_sylvester
            sqrtm
        """,
        "minijax.scipy.linalg.special_matrices": """
            block_diag circulant companion convolution_matrix dft fiedler
            fiedler_companion hadamard hankel helmert hilbert invhilbert invpascal
            leslie pascal toeplitz
        """,
    },
    "minijax.scipy.ndimage": {
        "minijax.scipy.interpolation": "map_coordinates",
    },
    "minijax.scipy.optimize": {
        "minijax.scipy.solvers": "OptimizeResults minimize",
    },
    "minijax.scipy.signal": {
        "minijax.scipy.signal.spectra": "csd detrend fftconvolve istft stft welch",
        "minijax.windows.convolution_forms": """
            convolve convolve2d correlate correlate2d
        """,
    },
    "minijax.scipy.sparse": {},
    "minijax.scipy.sparse.linalg": {
        "minijax.scipy.solvers": "bicgstab cg gmres",
    },
    "minijax.scipy.spatial": {},
    "minijax.scipy.spatial.transform": {
        "minijax.scipy.spatial.transform.rotations": "Rotation Slerp",
    },
    "minijax.scipy.special": {
        "minijax.scipy.special.entropies": """
            bernoulli bessel_jn betainc boxcox boxcox1p entr gammainc gammaincc i0 i0e
            i1 i1e kl_div log_ndtr logit ndtr ndtri polygamma rel_entr xlog1py xlogy
            zeta
        """,
        "minijax.scipy.special.gamma_functions": """
            beta betaln comb digamma erf erfc erfinv expit factorial gamma gammaln
            gammasgn loggamma multigammaln poch
        """,
        "minijax.scipy.special.integrals": """
            dawsn erfcx exp1 expi expn fresnel hyp1f1 hyp2f1 log_softmax logsumexp
            owens_t sici softmax spence sph_harm_y wofz
        """,
    },
    "minijax.scipy.stats": {
        "minijax.scipy.stats.random_variables": """
            bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm
            geom gumbel_l gumbel_r laplace logistic multinomial multivariate_normal
            nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy
        """,
        "minijax.scipy.stats.ranks": "gaussian_kde mode rankdata sem",
    },
    "minijax.sharding": {
        "minijax.arrays.devices": "ManualAxisType Sharding SingleDeviceSharding",
        "minijax.arrays.transfer": "make_single_device_sharding",
        "minijax.sharding.named_sharding": """
            AbstractDevice AbstractMesh AxisType Mesh NamedSharding PartitionSpec
            get_abstract_mesh get_mesh set_mesh use_abstract_mesh
        """,
        "minijax.sharding.single_axis": "auto_axes explicit_axes",
        "minijax.spmd.programs": "reshard",
    },
    "minijax.stages": {
        "minijax.jitting.stages": """
            ArgInfo Compiled CompilerOptions Lowered Traced Wrapped
        """,
    },
    "minijax.test_util": {
        "minijax.reverse_mode.derivative_checks": "check_grads check_jvp check_vjp",
    },
    "minijax.tree": {},
    "minijax.tree_util": {
        "minijax.pytrees.registry": """
            DictKey FlattenedIndexKey GetAttrKey KeyEntry KeyPath SequenceKey keystr
            register_pytree_node
        """,
        "minijax.pytrees.tree_operations": """
            Partial all_leaves default_registry flatten_one_level
            flatten_one_level_with_keys is_tree_node register_dataclass
            register_pytree_node_class register_pytree_with_keys
            register_pytree_with_keys_class register_static tree_all tree_broadcast
            tree_map_with_path tree_reduce tree_reduce_associative tree_transpose
            tree_unflatten treedef_children treedef_is_leaf treedef_tuple
        """,
        "minijax.pytrees.tree_util": """
            PyTreeDef tree_flatten tree_flatten_with_path tree_leaves
            tree_leaves_with_path tree_map tree_structure
        """,
    },
    "minijax.typing": {},
    "minijax.version": {},
}

PUBLIC: dict[str, dict[str, str]] = {
    space: {name: module for module in homes for name in homes[module].split()}
    for space, homes in NAMES.items()
}

WAITING: dict[str, str] = {
    "minijax.collectives.all_reduce": "minijax.sharding.named_sharding",
    "minijax.collectives.executors": "minijax.sharding.named_sharding",
    "minijax.distributed.direct_dispatch": "minijax.sharding.named_sharding",
    "minijax.distributed.latency_hiding": "minijax.sharding.named_sharding",
    "minijax.distributed.processes": "minijax.sharding.named_sharding",
    "minijax.experimental.checkify.mesh_rules": "minijax.sharding.named_sharding",
    "minijax.sharding.shard_map": "minijax.sharding.named_sharding",
    "minijax.spmd.partitioner": "minijax.sharding.named_sharding",
    "minijax.spmd.programs": "minijax.sharding.named_sharding",
    "minijax.spmd.propagation_rules": "minijax.sharding.named_sharding",
}

REGISTERS: list[str] = [
    "minijax.arrays.transfer",
    "minijax.arrays.config",
    "minijax.numpy.array_methods",
    "minijax.numpy.operators",
    "minijax.numpy.array_api",
    "minijax.forward_mode.jvp",
    "minijax.forward_mode.jvp_rules",
    "minijax.diagnostics.tracebacks",
    "minijax.diagnostics.error_messages",
    "minijax.reverse_mode.transpose_rules",
    "minijax.rematerialization.caching",
    "minijax.jitting.api",
    "minijax.python_backend.codegen",
    "minijax.python_backend.codegen_rules",
    "minijax.callbacks.debugger",
    "minijax.compat.primitives",
    "minijax.control_flow.common",
    "minijax.control_flow.conditionals",
    "minijax.control_flow.while_loops",
    "minijax.control_flow.cond_policies",
    "minijax.scans.scan",
    "minijax.scans.evaluation",
    "minijax.kernels.lowering",
    "minijax.llvm.codegen",
    "minijax.memory.allocator",
    "minijax.cpu_backend.program_codegen",
    "minijax.cpu_backend.backend",
    "minijax.cpu_backend.control_flow",
    "minijax.cpu_backend.profiler",
    "minijax.passes.pipeline",
    "minijax.passes.scan_reductions",
    "minijax.elementary_functions.elementwise_lowering",
    "minijax.vectorization.row_schedules",
    "minijax.vectorization.schedules",
    "minijax.matmul.lowering",
    "minijax.dispatch.compilation_cache",
    "minijax.dispatch.fastpath_functions",
    "minijax.dispatch.eager",
    "minijax.threads.parallel_loops",
    "minijax.indexing.dynamic_slices",
    "minijax.indexing.gather_scatter",
    "minijax.indexing.scatter_variants",
    "minijax.numpy.indexing",
    "minijax.sorting.radix_sort",
    "minijax.sorting.sort",
    "minijax.numpy.sorting",
    "minijax.windows.convolution",
    "minijax.windows.reduce_window",
    "minijax.numpy.fft.kernels",
    "minijax.prng.keys",
    "minijax.distributions.inversion",
    "minijax.prng.key_reuse",
    "minijax.prng.random_primitives",
    "minijax.scipy.special.trigamma",
    "minijax.numpy.linalg.singular_value_norms",
    "minijax.numpy.ufunc_objects",
    "minijax.random.bit_generators",
    "minijax.cuda.platform",
    "minijax.sharding.manual_axes",
    "minijax.sharding.visualization",
    "minijax.sharding.replicas",
    "minijax.sharding.shard_map",
    "minijax.spmd.partitioner",
    "minijax.spmd.programs",
    "minijax.experimental.checkify.mesh_rules",
    "minijax.spmd.propagation_rules",
    "minijax.collectives.all_reduce",
    "minijax.collectives.executors",
    "minijax.distributed.processes",
    "minijax.distributed.direct_dispatch",
    "minijax.distributed.latency_hiding",
    "minijax.stablehlo.backend",
]
