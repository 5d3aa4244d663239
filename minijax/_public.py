"""Public names by the modules which define them; modules which fill tables."""

# Made from the chapters by `make chapters`; edit them, not this file.

# For each module that users import: the modules that have its names.
NAMES: dict[str, dict[str, str]] = {
    "minijax": {
        "minijax.arrays.avals": "typeof",
        "minijax.arrays.interchange": "Shard",
        "minijax.arrays.placement": "Device default_backend devices",
        "minijax.arrays.settings": "config enable_x64",
        "minijax.arrays.transfer": """
            device_count host_count host_id host_ids local_device_count local_devices
            process_count process_index process_indices
        """,
        "minijax.batching.trace": "vmap",
        "minijax.callbacks.debug_settings": "debug_infs debug_nans",
        "minijax.callbacks.host_calls": "effects_barrier",
        "minijax.callbacks.primitives": "pure_callback",
        "minijax.compositions.named_parts": "fwd_and_bwd named_call named_scope",
        "minijax.core": "Array",
        "minijax.doorways.dtype_names": "float0",
        "minijax.forgetting.policies": "checkpoint_policies remat",
        "minijax.forgetting.rematerialisation": "checkpoint",
        "minijax.jaxprs.shape_structs": "ShapeDtypeStruct",
        "minijax.jaxprs.staging_api": "eval_shape make_jaxpr",
        "minijax.jitting.api": """
            clear_caches disable_jit explain_cache_misses jit live_arrays
        """,
        "minijax.linear.linearization": "linearize",
        "minijax.mesh_maps.resharding": "reshard",
        "minijax.own_rules.closures": "closure_convert custom_gradient",
        "minijax.own_rules.cotangent_rules": "custom_vjp",
        "minijax.own_rules.tangent_rules": "custom_jvp",
        "minijax.pytrees.forward_api": "jvp",
        "minijax.pytrees.operations": """
            block_until_ready copy_to_host_async device_get device_put
        """,
        "minijax.replicas.meshes": "make_mesh",
        "minijax.replicas.parallel_maps": "pmap",
        "minijax.replicas.partition_specs": "P",
        "minijax.replicas.sharded_arrays": """
            make_array_from_callback make_array_from_process_local_data
            make_array_from_single_device_arrays
        """,
        "minijax.replicas.specifications": "shard_map",
        "minijax.reverse.backwards": "vjp",
        "minijax.reverse.gradients": "grad value_and_grad",
        "minijax.reverse.jacobians": "hessian jacfwd jacobian jacrev",
        "minijax.reverse.linear_functions": "linear_transpose",
        "minijax.spmd.public_constraints": "NamedSharding set_mesh",
        "minijax.switches.managers": """
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
        "minijax.threads.environment": "print_environment_info",
    },
    "minijax.__main__": {},
    "minijax.ad_checkpoint": {
        "minijax.forgetting.decisions": "Offloadable Recompute Saveable",
        "minijax.forgetting.policies": "checkpoint_name checkpoint_policies",
        "minijax.forgetting.residuals": "print_saved_residuals",
    },
    "minijax.api_util": {
        "minijax.doorways.flat_arguments": """
            argnums_partial debug_info donation_vector flatten_axes flatten_fun
            flatten_fun_nokwargs rebase_donate_argnums safe_map shaped_abstractify
        """,
    },
    "minijax.core": {
        "minijax.doorways.core_names": """
            AbstractValue Atom ParamDict ShapedArray Value ensure_compile_time_eval
            eval_context eval_jaxpr max_dim min_dim
        """,
    },
    "minijax.custom_batching": {
        "minijax.own_rules.batch_rules": "custom_vmap",
        "minijax.scans.batched_calls": "sequential_vmap",
    },
    "minijax.custom_derivatives": {},
    "minijax.debug": {},
    "minijax.distributed": {
        "minijax.ranks.initialization": "initialize is_initialized shutdown",
    },
    "minijax.dlpack": {
        "minijax.arrays.transfer": "from_dlpack is_supported_dtype",
    },
    "minijax.dtypes": {
        "minijax.doorways.dtype_names": """
            TypePromotionError bfloat16 canonicalize_dtype extended finfo float0 iinfo
            issubdtype itemsize_bits result_type scalar_type_of
        """,
        "minijax.doorways.random_names": "prng_key",
    },
    "minijax.errors": {},
    "minijax.example_libraries": {},
    "minijax.example_libraries.optimizers": {
        "minijax.training.gradient_lengths": """
            JoinPoint clip_grads l2_norm pack_optimizer_state unpack_optimizer_state
        """,
        "minijax.training.more_optimizers": """
            adagrad adamax nesterov rmsprop rmsprop_momentum sm3
        """,
        "minijax.training.schedules": """
            exponential_decay inverse_time_decay piecewise_constant polynomial_decay
        """,
        "minijax.training.tree_optimizers": """
            Optimizer OptimizerState adam constant make_schedule momentum optimizer sgd
        """,
    },
    "minijax.example_libraries.stax": {
        "minijax.training.activation_layers": """
            Elu Exp FanInConcat FanInSum FanOut Gelu Identity LeakyRelu LogSoftmax Relu
            Selu Sigmoid Softmax Softplus Tanh elementwise
        """,
        "minijax.training.convolution_layers": """
            Conv Conv1DTranspose ConvTranspose GeneralConv GeneralConvTranspose
        """,
        "minijax.training.layers": "Dense parallel serial shape_dependent",
        "minijax.training.more_layers": "glorot logsoftmax randn",
        "minijax.training.normal_layers": "BatchNorm Dropout Flatten",
        "minijax.training.pool_layers": "AvgPool MaxPool SumPool",
    },
    "minijax.experimental": {
        "minijax.callbacks.primitives": "io_callback",
        "minijax.discovery.automatic": "autojit",
    },
    "minijax.experimental.checkify": {
        "minijax.experimental.checkify.checking": """
            all_checks automatic_checks div_checks float_checks index_checks nan_checks
            user_checks
        """,
        "minijax.experimental.checkify.checks": """
            Error ErrorCategory JaxRuntimeError check check_error debug_check init_error
        """,
        "minijax.experimental.checkify.transformation": "checkify",
    },
    "minijax.experimental.mesh_utils": {
        "minijax.experimental.mesh_utils.grids": """
            create_device_mesh create_hybrid_device_mesh
        """,
    },
    "minijax.experimental.multihost_utils": {
        "minijax.ranks.multihost": """
            assert_equal broadcast_one_to_all global_array_to_host_local_array
            host_local_array_to_global_array process_allgather sync_global_devices
        """,
    },
    "minijax.experimental.ode": {
        "minijax.experimental.ode.adjoints": "odeint",
    },
    "minijax.experimental.pjit": {
        "minijax.experimental.pjit.older": "pjit",
    },
    "minijax.experimental.shard_map": {
        "minijax.experimental.shard_map.older": "shard_map",
    },
    "minijax.export": {
        "minijax.exporting.exported": "Exported default_export_platform export",
    },
    "minijax.extend": {},
    "minijax.extend.backend": {
        "minijax.doorways.backend_names": """
            backends clear_backends get_backend get_default_device
        """,
    },
    "minijax.extend.core": {
        "minijax.callbacks.extension": "Primitive",
        "minijax.doorways.extension_names": """
            DropVar Effect Effects InconclusiveDimensionOperation array_types
            concrete_or_error find_top_trace gensym get_opaque_trace_state mapped_aval
            new_jaxpr_eqn no_effects nonempty_axis_env_DO_NOT_USE
            primal_dtype_to_tangent_dtype set_current_trace take_current_trace
            unmapped_aval unsafe_am_i_under_a_jit_DO_NOT_USE
            unsafe_am_i_under_a_vmap_DO_NOT_USE unsafe_get_axis_names_DO_NOT_USE
            valid_jaxtype
        """,
        "minijax.jaxprs.checking": "JaxprTypeError check_jaxpr",
        "minijax.jaxprs.jaxpr": "ClosedJaxpr Jaxpr JaxprEqn Literal Var jaxpr_as_fun",
        "minijax.jaxprs.printing": "jaxprs_in_params subjaxprs",
    },
    "minijax.extend.core.primitives": {
        "minijax.doorways.control_names": "cond_p scan_p while_p",
        "minijax.doorways.primitive_names": """
            abs_p acos_p acosh_p add_jaxvals_p add_p all_gather_p all_to_all_p and_p
            argmax_p argmin_p asin_p asinh_p atan2_p atan_p atanh_p axis_index_p
            bitcast_convert_type_p broadcast_in_dim_p cbrt_p ceil_p clamp_p clz_p
            complex_p concatenate_p conj_p convert_element_type_p copy_p cos_p cosh_p
            cumlogsumexp_p cummax_p cummin_p cumprod_p cumsum_p custom_jvp_call_p
            custom_lin_p custom_vjp_call_p digamma_p div_p dot_general_p eq_p erf_inv_p
            erf_p erfc_p exp2_p exp_p expm1_p floor_p ge_p gt_p imag_p integer_pow_p
            iota_p is_finite_p jit_p le_p lgamma_p linear_solve_p log1p_p log_p
            logistic_p lt_p max_p min_p mul_p name_p ne_p neg_p nextafter_p not_p or_p
            pad_p pmax_p pmin_p population_count_p pow_p ppermute_p psum_p real_p
            reduce_and_p reduce_max_p reduce_min_p reduce_or_p reduce_precision_p
            reduce_prod_p reduce_sum_p reduce_xor_p rem_p remat_p reshape_p rev_p
            round_p rsqrt_p select_n_p shift_left_p shift_right_arithmetic_p
            shift_right_logical_p sign_p sin_p sinh_p slice_p sqrt_p square_p squeeze_p
            stop_gradient_p sub_p tan_p tanh_p transpose_p xor_p
        """,
        "minijax.doorways.random_names": """
            random_bits_p random_fold_in_p random_seed_p random_split_p
        """,
        "minijax.extend.core.later_primitives": "empty2_p sharding_constraint_p",
        "minijax.extend.core.library_primitives": """
            cholesky_p conv_general_dilated_p device_put_p dynamic_slice_p
            dynamic_update_slice_p eig_p eigh_p fft_p gather_p hessenberg_p
            householder_product_p lu_p qr_p random_gamma_p reduce_window_max_p
            reduce_window_min_p reduce_window_p reduce_window_sum_p scatter_add_p
            scatter_max_p scatter_min_p scatter_mul_p scatter_p schur_p sort_p svd_p
            top_k_p triangular_solve_p tridiagonal_p tridiagonal_solve_p
        """,
    },
    "minijax.extend.linear_util": {
        "minijax.doorways.wrapped_functions": """
            StoreException WrappedFun cache merge_linear_aux transformation
            transformation2 transformation_with_aux transformation_with_aux2 wrap_init
        """,
    },
    "minijax.extend.random": {
        "minijax.doorways.generator_names": """
            random_seed seed_with_impl threefry_2x32 threefry_prng_impl
        """,
    },
    "minijax.extend.source_info_util": {
        "minijax.doorways.source_names": """
            current new_source_info register_exclusion summarize
        """,
    },
    "minijax.flatten_util": {
        "minijax.pytrees.raveling": "ravel_pytree",
    },
    "minijax.image": {
        "minijax.image.resampling": "ResizeMethod resize scale_and_translate",
    },
    "minijax.interpreters": {},
    "minijax.interpreters.ad": {},
    "minijax.interpreters.batching": {},
    "minijax.lax": {
        "minijax.arrays.checks": "AccuracyMode Tolerance broadcast_shapes",
        "minijax.batching.collectives": """
            pmax pmax_p pmean pmin pmin_p ppermute ppermute_p psum psum_p
        """,
        "minijax.batching.exchanges": """
            all_gather all_gather_p all_to_all all_to_all_p psum_scatter
            reduce_scatter_p
        """,
        "minijax.batching.named_axes": "axis_index axis_index_p axis_size",
        "minijax.branches.conditionals": "cond cond_p switch",
        "minijax.branches.while_loops": "while_loop while_p",
        "minijax.compositions.lax_arrangements": """
            broadcast_like composite device_put_p dtype empty fft_p mulhi
            platform_dependent ragged_dot reduce scan_p shape_as_value split stack tile
            unstack
        """,
        "minijax.contractions.ragged_products": """
            DotDimensionNumbers PrecisionLike RaggedDotDimensionNumbers index_take
            ragged_dot_general
        """,
        "minijax.distributions.gamma_slopes": "random_gamma_grad",
        "minijax.forgetting.barriers": "optimization_barrier optimization_barrier_p",
        "minijax.forgetting.sinks": "dce_sink dce_sink_p stage",
        "minijax.indexing.dimension_numbers": """
            GatherDimensionNumbers GatherScatterMode ScatterDimensionNumbers
        """,
        "minijax.indexing.dynamic_slices": """
            dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_slice_p
            dynamic_update_index_in_dim dynamic_update_slice dynamic_update_slice_in_dim
            dynamic_update_slice_p
        """,
        "minijax.indexing.primitives": """
            gather gather_p scatter scatter_add scatter_add_p scatter_p
        """,
        "minijax.indexing.scatters": """
            scatter_apply scatter_max scatter_max_p scatter_min scatter_min_p
            scatter_mul scatter_mul_p scatter_sub scatter_sub_p
        """,
        "minijax.lax.arithmetic": """
            add add_p lt lt_p mul mul_p reduce_sum reduce_sum_p sub sub_p tanh tanh_p
        """,
        "minijax.lax.broadcasting": """
            broadcast_in_dim broadcast_in_dim_p broadcast_to_rank
        """,
        "minijax.lax.contraction": """
            Precision batch_matmul dot dot_general dot_general_p
        """,
        "minijax.lax.conversion": "convert_element_type_p",
        "minijax.lax.creation": """
            bitcast_convert_type bitcast_convert_type_p broadcasted_iota
            convert_element_type copy_p full full_like iota iota_p
        """,
        "minijax.lax.cutting": """
            concatenate concatenate_p index_in_dim pad pad_p slice slice_in_dim slice_p
        """,
        "minijax.lax.elementwise": """
            RoundingMethod abs abs_p acos acos_p acosh acosh_p add_any_p and_p asin
            asin_p asinh asinh_p atan atan2 atan2_p atan_p atanh atanh_p bitwise_and
            bitwise_not bitwise_or bitwise_xor cbrt cbrt_p ceil ceil_p clz clz_p complex
            complex_p conj conj_p cos cos_p cosh cosh_p digamma digamma_p div div_p eq
            eq_p erf erf_inv erf_inv_p erf_p erfc erfc_p exp exp2 exp2_p exp_p expm1
            expm1_p floor floor_p ge ge_p gt gt_p imag imag_p integer_pow integer_pow_p
            is_finite is_finite_p le le_p lgamma lgamma_p log log1p log1p_p log_p
            logistic logistic_p max max_p min min_p ne ne_p neg neg_p nextafter
            nextafter_p not_p or_p population_count population_count_p pow pow_p real
            real_p reciprocal reduce_precision reduce_precision_p rem rem_p round
            round_p rsqrt rsqrt_p shift_left shift_left_p shift_right_arithmetic
            shift_right_arithmetic_p shift_right_logical shift_right_logical_p sign
            sign_p sin sin_p sinh sinh_p sqrt sqrt_p square square_p tan tan_p xor_p
        """,
        "minijax.lax.reductions": """
            argmax argmax_p argmin argmin_p cumlogsumexp cumlogsumexp_p cummax cummax_p
            cummin cummin_p cumprod cumprod_p cumsum cumsum_p reduce_and reduce_and_p
            reduce_max reduce_max_p reduce_min reduce_min_p reduce_or reduce_or_p
            reduce_prod reduce_prod_p reduce_xor reduce_xor_p
        """,
        "minijax.lax.selection": "clamp clamp_p select select_n select_n_p",
        "minijax.lax.shaping": """
            broadcast collapse expand_dims reshape reshape_p rev rev_p squeeze squeeze_p
            transpose transpose_p
        """,
        "minijax.numpy.fft.fourier": "FftType fft",
        "minijax.own_rules.implicit_solutions": """
            custom_linear_solve custom_root linear_solve_p
        """,
        "minijax.own_rules.stopped_gradients": "stop_gradient stop_gradient_p",
        "minijax.random.bit_generators": """
            RandomAlgorithm rng_bit_generator rng_uniform
        """,
        "minijax.replicas.more_collectives": """
            pbroadcast pcast pshuffle pswapaxes ragged_all_to_all
        """,
        "minijax.scans.associative": "associative_scan",
        "minijax.scans.loops": "fori_loop scan",
        "minijax.scans.mapping": "map",
        "minijax.scipy.special.lax_names": """
            bessel_i0e bessel_i1e betainc igamma igamma_grad_a igammac polygamma zeta
        """,
        "minijax.sorting.largest": "approx_max_k approx_min_k top_k top_k_p",
        "minijax.sorting.primitive": "sort sort_key_val sort_p",
        "minijax.spmd.constraints": "sharding_constraint_p",
        "minijax.spmd.public_constraints": "with_sharding_constraint",
        "minijax.windows.convolution": "conv_general_dilated conv_general_dilated_p",
        "minijax.windows.convolution_forms": """
            conv conv_general_dilated_local conv_general_dilated_patches conv_transpose
            conv_with_general_padding
        """,
        "minijax.windows.convolution_shapes": """
            ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers
            conv_dimension_numbers conv_general_permutations conv_general_shape_tuple
            conv_shape_tuple conv_transpose_shape_tuple
        """,
        "minijax.windows.geometry": "padtype_to_pads reduce_window_shape_tuple",
        "minijax.windows.pooling": """
            reduce_window reduce_window_max_p reduce_window_min_p reduce_window_p
            reduce_window_sum_p
        """,
        "minijax.windows.selections": """
            select_and_gather_add_p select_and_scatter_add_p
        """,
    },
    "minijax.lax.linalg": {
        "minijax.factorizations.cholesky": "cholesky cholesky_p",
        "minijax.factorizations.eigenvectors": "EighImplementation eigh eigh_p",
        "minijax.factorizations.elimination": """
            lu lu_p lu_pivots_to_permutation lu_pivots_to_permutation_p
        """,
        "minijax.factorizations.orthogonal_factors": "qr qr_p",
        "minijax.factorizations.singular_values": "SvdAlgorithm svd svd_p",
        "minijax.factorizations.triangular": "triangular_solve triangular_solve_p",
        "minijax.lax.linalg.general_eigenvectors": "EigImplementation eig eig_p",
        "minijax.lax.linalg.polar_iterations": "qdwh",
        "minijax.lax.linalg.reductions": """
            hessenberg hessenberg_p householder_product householder_product_p ormqr
            ormqr_p tridiagonal tridiagonal_p
        """,
        "minijax.lax.linalg.schur_forms": "schur schur_p",
        "minijax.lax.linalg.tridiagonal_systems": """
            tridiagonal_solve tridiagonal_solve_p
        """,
        "minijax.lax.linalg.updates": """
            cholesky_update cholesky_update_p symmetric_product symmetric_product_p
        """,
    },
    "minijax.nn": {
        "minijax.compositions.activations": """
            celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity
            leaky_relu log1mexp log_sigmoid mish one_hot relu relu6 selu sigmoid silu
            soft_sign softplus sparse_plus sparse_sigmoid squareplus swish tanh
        """,
        "minijax.compositions.attention_layers": "dot_product_attention",
        "minijax.compositions.normalisation": """
            log_softmax logmeanexp logsumexp softmax standardize
        """,
        "minijax.nn.scaled_products": "scaled_matmul",
    },
    "minijax.nn.initializers": {
        "minijax.nn.initializers.initial_weights": """
            Initializer constant delta_orthogonal glorot_normal glorot_uniform he_normal
            he_uniform kaiming_normal kaiming_uniform lecun_normal lecun_uniform normal
            ones orthogonal truncated_normal uniform variance_scaling xavier_normal
            xavier_uniform zeros
        """,
    },
    "minijax.numpy": {
        "minijax.branches.calling": """
            apply_along_axis apply_over_axes fromfunction piecewise vectorize
        """,
        "minijax.branches.divisors": "gcd lcm",
        "minijax.catalogue.arrangements": """
            block column_stack concat delete diagflat dsplit dstack fliplr flipud hsplit
            insert kron permute_dims resize roll rollaxis rot90 unstack vsplit
        """,
        "minijax.catalogue.borrowed": """
            ComplexWarning array_repr array_str character flexible frombuffer fromfile
            fromiter fromstring get_printoptions load object_ printoptions save savez
            set_printoptions
        """,
        "minijax.catalogue.floats": """
            angle copysign fabs float_power fmax fmin frexp heaviside isneginf isposinf
            ldexp logaddexp2 modf nan_to_num signbit sinc
        """,
        "minijax.catalogue.grids": """
            c_ diag_indices_from fill_diagonal index_exp indices ix_ mask_indices mgrid
            ogrid r_ ravel_multi_index s_ tril_indices tril_indices_from triu_indices
            triu_indices_from unravel_index
        """,
        "minijax.catalogue.measures": """
            average cross cumulative_prod cumulative_sum diff ediff1d geomspace logspace
            matvec polyder polyval trapezoid vander vecdot vecmat
        """,
        "minijax.catalogue.missing_numbers": """
            nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod
            nanstd nansum nanvar
        """,
        "minijax.catalogue.padding": "pad",
        "minijax.catalogue.ranges": "arange bartlett blackman hamming hanning linspace",
        "minijax.catalogue.samples": """
            corrcoef cov gradient polyadd polyint polymul polysub
        """,
        "minijax.catalogue.selections": """
            bitwise_count choose interp isin packbits select spacing unpackbits unwrap
        """,
        "minijax.catalogue.standard": "can_cast isdtype iterable",
        "minijax.compositions.function_objects": "frompyfunc ufunc",
        "minijax.compositions.histograms": """
            histogram histogram2d histogram_bin_edges histogramdd
        """,
        "minijax.compositions.polynomials": """
            i0 kaiser poly polydiv polyfit roots trim_zeros
        """,
        "minijax.compositions.set_operations": """
            intersect1d setdiff1d setxor1d union1d unique_all unique_counts
            unique_inverse unique_values
        """,
        "minijax.compositions.sets": "unique",
        "minijax.contractions.pairwise": "einsum einsum_path",
        "minijax.indexing.nonzeros": """
            argwhere bincount compress extract flatnonzero nonzero
        """,
        "minijax.indexing.takes": "place put put_along_axis take take_along_axis",
        "minijax.numpy.arithmetic": """
            around divmod floor_divide fmod hypot logaddexp mod pow power remainder
            round
        """,
        "minijax.numpy.creation": """
            array asarray astype copy empty empty_like full full_like ones ones_like
            zeros zeros_like
        """,
        "minijax.numpy.elementwise": """
            abs absolute acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh
            asin asinh atan atan2 atanh bitwise_left_shift bitwise_right_shift cbrt ceil
            conj conjugate cos cosh deg2rad degrees exp2 expm1 floor imag iscomplex
            isfinite isinf isnan isreal left_shift log log10 log1p log2 logical_and
            logical_not logical_or logical_xor minimum nextafter positive rad2deg
            radians real reciprocal right_shift rint sign sin sinh sqrt square tan trunc
        """,
        "minijax.numpy.joining": """
            append array_split concatenate flip hstack repeat split stack tile vstack
        """,
        "minijax.numpy.matrices": """
            diag diag_indices diagonal eye identity meshgrid tri tril triu
        """,
        "minijax.numpy.products": "dot inner matmul outer tensordot vdot",
        "minijax.numpy.reductions": """
            all amax amin any count_nonzero max min prod ptp sum
        """,
        "minijax.numpy.scalar_types": """
            bfloat16 bool bool_ cdouble complex128 complex64 complex_ complexfloating
            csingle double dtype e euler_gamma finfo float16 float32 float64 float_
            floating from_dlpack generic iinfo inexact inf int16 int32 int64 int8 int_
            integer iscomplexobj isrealobj isscalar issubdtype nan ndarray ndim newaxis
            number pi promote_types result_type shape signedinteger single size uint
            uint16 uint32 uint64 uint8 unsignedinteger
        """,
        "minijax.numpy.selection": "allclose array_equal array_equiv clip isclose",
        "minijax.numpy.shapes": """
            atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes
            broadcast_to expand_dims matrix_transpose moveaxis ravel reshape squeeze
            swapaxes transpose
        """,
        "minijax.numpy.statistics": "argmax argmin cumprod cumsum mean std trace var",
        "minijax.numpy.ufuncs": """
            add bitwise_and bitwise_invert bitwise_not bitwise_or bitwise_xor divide
            equal exp greater greater_equal invert less less_equal maximum multiply
            negative not_equal subtract tanh true_divide where
        """,
        "minijax.scipy.signal.convolutions": "convolve correlate",
        "minijax.sorting.quantiles": """
            median nanmedian nanpercentile nanquantile percentile quantile
        """,
        "minijax.sorting.searching": "digitize searchsorted",
        "minijax.sorting.sorted_arrays": """
            argpartition argsort lexsort partition sort sort_complex
        """,
    },
    "minijax.numpy.fft": {
        "minijax.numpy.fft.frequencies": "fftfreq fftshift ifftshift rfftfreq",
        "minijax.numpy.fft.transforms": """
            fft fft2 fftn hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2
            rfftn
        """,
    },
    "minijax.numpy.linalg": {
        "minijax.factorizations.least_squares": "cond lstsq matrix_rank multi_dot pinv",
        "minijax.factorizations.numpy_factors": "cholesky eigh eigvalsh qr svd svdvals",
        "minijax.factorizations.systems": """
            det inv matrix_power slogdet solve tensorinv tensorsolve
        """,
        "minijax.numpy.linalg.norms": "norm",
        "minijax.numpy.linalg.standard": """
            cross diagonal eig eigvals matmul matrix_norm matrix_transpose outer
            tensordot trace vecdot vector_norm
        """,
    },
    "minijax.ops": {
        "minijax.ops.segments": "segment_max segment_min segment_prod segment_sum",
    },
    "minijax.profiler": {
        "minijax.profiler.spans": """
            ProfileOptions StepTraceAnnotation TraceAnnotation annotate_function
            start_trace stop_trace trace
        """,
    },
    "minijax.random": {
        "minijax.distributions.choices": """
            bernoulli categorical geometric rademacher randint
        """,
        "minijax.distributions.counts": "binomial multinomial poisson",
        "minijax.distributions.from_gamma": """
            ball beta chisquare dirichlet f generalized_normal t
        """,
        "minijax.distributions.gamma": "gamma loggamma random_gamma_p",
        "minijax.distributions.inversion": "cauchy exponential gumbel laplace logistic",
        "minijax.distributions.matrices": "multivariate_normal orthogonal",
        "minijax.distributions.permutations": "choice permutation",
        "minijax.distributions.shaped": """
            double_sided_maxwell lognormal maxwell pareto rayleigh triangular
            truncated_normal wald weibull_min
        """,
        "minijax.randomness.generator_settings": "key_dtype",
        "minijax.randomness.making_keys": """
            PRNGKey clone fold_in key key_data key_impl split wrap_key_data
        """,
        "minijax.randomness.normal": "normal",
        "minijax.randomness.uniform": "bits uniform",
    },
    "minijax.scipy": {},
    "minijax.scipy.cluster": {},
    "minijax.scipy.cluster.vq": {
        "minijax.scipy.cluster.vq.codes": "vq",
    },
    "minijax.scipy.fft": {
        "minijax.scipy.fft.cosines": "dct dctn idct idctn",
    },
    "minijax.scipy.integrate": {
        "minijax.scipy.integrate.rules": "trapezoid",
    },
    "minijax.scipy.interpolate": {
        "minijax.scipy.interpolate.grids": "RegularGridInterpolator",
    },
    "minijax.scipy.linalg": {
        "minijax.scipy.linalg.exponentials": "expm expm_frechet",
        "minijax.scipy.linalg.functions_of_matrices": """
            funm hessenberg qr_multiply rsf2csf schur solve_sylvester sqrtm
        """,
        "minijax.scipy.linalg.scipy_factors": """
            cho_factor cho_solve cholesky det eigh inv lu lu_factor lu_solve polar qr
            solve solve_triangular svd
        """,
        "minijax.scipy.linalg.special_matrices": """
            block_diag circulant companion convolution_matrix dft fiedler
            fiedler_companion hadamard hankel helmert hilbert invhilbert invpascal
            leslie pascal toeplitz
        """,
        "minijax.scipy.linalg.tridiagonal_eigenvalues": "eigh_tridiagonal",
    },
    "minijax.scipy.ndimage": {
        "minijax.scipy.ndimage.interpolation": "map_coordinates",
    },
    "minijax.scipy.optimize": {
        "minijax.scipy.optimize.descent": "OptimizeResults minimize",
    },
    "minijax.scipy.signal": {
        "minijax.scipy.signal.arrays_of_signals": """
            convolve convolve2d correlate correlate2d
        """,
        "minijax.scipy.signal.spectra": "csd istft stft welch",
        "minijax.scipy.signal.trends": "detrend fftconvolve",
    },
    "minijax.scipy.sparse": {},
    "minijax.scipy.sparse.linalg": {
        "minijax.scipy.sparse.linalg.iterations": "bicgstab cg gmres",
    },
    "minijax.scipy.spatial": {},
    "minijax.scipy.spatial.transform": {
        "minijax.scipy.spatial.transform.rotations": "Rotation Slerp",
    },
    "minijax.scipy.special": {
        "minijax.scipy.special.borrowed": """
            bernoulli bessel_jn betainc gammainc gammaincc i0 i0e i1 i1e polygamma zeta
        """,
        "minijax.scipy.special.entropies": """
            boxcox boxcox1p entr kl_div logit rel_entr xlog1py xlogy
        """,
        "minijax.scipy.special.gamma_functions": """
            beta betaln comb digamma erf erfc erfinv expit factorial gamma gammaln
            gammasgn loggamma multigammaln poch
        """,
        "minijax.scipy.special.hypergeometric": "hyp1f1 hyp2f1 sph_harm_y",
        "minijax.scipy.special.integrals": """
            dawsn erfcx exp1 expi expn fresnel owens_t sici spence wofz
        """,
        "minijax.scipy.special.normal_integrals": "log_ndtr ndtr ndtri",
        "minijax.scipy.special.scores": "log_softmax logsumexp softmax",
    },
    "minijax.scipy.stats": {
        "minijax.scipy.stats.continuous": """
            beta cauchy chi2 expon gamma gennorm gumbel_l gumbel_r laplace logistic norm
            pareto t truncnorm uniform vonmises wrapcauchy
        """,
        "minijax.scipy.stats.densities": "gaussian_kde",
        "minijax.scipy.stats.discrete": "bernoulli betabinom binom geom nbinom poisson",
        "minijax.scipy.stats.ranks": "mode rankdata sem",
        "minijax.scipy.stats.vectors": "dirichlet multinomial multivariate_normal",
    },
    "minijax.sharding": {
        "minijax.arrays.placement": "SingleDeviceSharding",
        "minijax.arrays.sharding_types": "ManualAxisType Sharding",
        "minijax.arrays.transfer": "make_single_device_sharding",
        "minijax.mesh_maps.resharding": "reshard",
        "minijax.replicas.meshes": """
            AbstractDevice AbstractMesh AxisType Mesh get_abstract_mesh get_mesh
            set_mesh use_abstract_mesh
        """,
        "minijax.replicas.named_shardings": "NamedSharding",
        "minijax.replicas.partition_specs": "PartitionSpec",
    },
    "minijax.stages": {
        "minijax.jitting.lowering": "ArgInfo Compiled Lowered Traced Wrapped",
    },
    "minijax.test_util": {
        "minijax.reverse.numerical_checks": "check_grads",
        "minijax.reverse.rule_checks": "check_jvp check_vjp",
    },
    "minijax.tree": {},
    "minijax.tree_util": {
        "minijax.pytrees.functions": "tree_map",
        "minijax.pytrees.key_paths": """
            DictKey FlattenedIndexKey GetAttrKey KeyEntry KeyPath SequenceKey keystr
        """,
        "minijax.pytrees.node_kinds": "register_pytree_node",
        "minijax.pytrees.operations": """
            all_leaves tree_all tree_broadcast tree_map_with_path tree_reduce
            tree_reduce_associative tree_transpose tree_unflatten treedef_children
            treedef_is_leaf treedef_tuple
        """,
        "minijax.pytrees.registration": """
            Partial default_registry flatten_one_level flatten_one_level_with_keys
            is_tree_node register_dataclass register_pytree_node_class
            register_pytree_with_keys register_pytree_with_keys_class register_static
        """,
        "minijax.pytrees.treedefs": """
            PyTreeDef tree_flatten tree_flatten_with_path tree_leaves
            tree_leaves_with_path tree_structure
        """,
    },
    "minijax.typing": {},
}

PUBLIC: dict[str, dict[str, str]] = {
    space: {name: module for module in homes for name in homes[module].split()}
    for space, homes in NAMES.items()
}

WAITING: dict[str, str] = {
    "minijax.experimental.checkify.mesh_rules": "minijax.replicas.meshes",
    "minijax.overlap.schedules": "minijax.replicas.meshes",
    "minijax.overlap.split_exchanges": "minijax.replicas.meshes",
    "minijax.ranks.crossings": "minijax.replicas.meshes",
    "minijax.ranks.direct_runs": "minijax.replicas.meshes",
    "minijax.ranks.engines": "minijax.replicas.meshes",
    "minijax.ranks.shared_maps": "minijax.replicas.meshes",
    "minijax.replicas.sharded_maps": "minijax.replicas.meshes",
    "minijax.spmd.mesh_programs": "minijax.replicas.meshes",
    "minijax.spmd.program_ends": "minijax.replicas.meshes",
    "minijax.spmd.spreading_loops": "minijax.replicas.meshes",
    "minijax.spmd.spreading_places": "minijax.replicas.meshes",
    "minijax.spmd.spreading_rules": "minijax.replicas.meshes",
    "minijax.spmd.spreading_windows": "minijax.replicas.meshes",
    "minijax.teams.exchange_steps": "minijax.replicas.meshes",
    "minijax.teams.halls": "minijax.replicas.meshes",
    "minijax.teams.joint_exchanges": "minijax.replicas.meshes",
    "minijax.teams.native_runs": "minijax.replicas.meshes",
    "minijax.teams.quick_calls": "minijax.replicas.meshes",
    "minijax.teams.turns": "minijax.replicas.meshes",
}

REGISTERS: list[str] = [
    "minijax.switches.known",
    "minijax.switches.promotion",
    "minijax.operators.syntax",
    "minijax.operators.conversions",
    "minijax.operators.methods",
    "minijax.catalogue.namespaces",
    "minijax.forward.calculus",
    "minijax.forward.primitive_rules",
    "minijax.forward.programs",
    "minijax.forward.running",
    "minijax.diagnostics.user_lines",
    "minijax.diagnostics.tracebacks",
    "minijax.diagnostics.scenes",
    "minijax.diagnostics.explanations",
    "minijax.diagnostics.public_guards",
    "minijax.reverse.other_transposes",
    "minijax.forgetting.remembering",
    "minijax.jitting.cache_misses",
    "minijax.emitted.elementwise",
    "minijax.emitted.sums",
    "minijax.emitted.inner_programs",
    "minijax.emitted.backend",
    "minijax.emitted.formulas",
    "minijax.emitted.arrays",
    "minijax.callbacks.invalid_numbers",
    "minijax.branches.rewiring",
    "minijax.branches.conditional_rules",
    "minijax.branches.python",
    "minijax.branches.while_rules",
    "minijax.branches.kept_values",
    "minijax.scans.rules",
    "minijax.scans.transposition",
    "minijax.scans.python",
    "minijax.scans.whole_scans",
    "minijax.kernels.rules",
    "minijax.kernels.backends",
    "minijax.llvm.backend",
    "minijax.memory.backend",
    "minijax.machine.nested",
    "minijax.machine.nested_rules",
    "minijax.machine.step_writers",
    "minijax.machine.backend",
    "minijax.machine.choices",
    "minijax.machine.running_totals",
    "minijax.machine.profiling",
    "minijax.passes.pipeline",
    "minijax.loop_sums.delayed_sums",
    "minijax.functions.kernel_rules",
    "minijax.functions.complex_functions",
    "minijax.vectors.held_rows",
    "minijax.vectors.strips",
    "minijax.vectors.streaming",
    "minijax.vectors.transposing",
    "minijax.vectors.kernels",
    "minijax.vectors.backend",
    "minijax.matmul.lowering",
    "minijax.matmul.calls",
    "minijax.calls.object_cache",
    "minijax.calls.gated_functions",
    "minijax.threads.shared_text",
    "minijax.indexing.slice_rules",
    "minijax.indexing.rules",
    "minijax.indexing.brackets",
    "minijax.indexing.updates",
    "minijax.indexing.scatter_rules",
    "minijax.sorting.steps",
    "minijax.sorting.rules",
    "minijax.sorting.lowered_sorts",
    "minijax.sorting.methods",
    "minijax.windows.convolution_rules",
    "minijax.windows.convolution_kernels",
    "minijax.windows.pooling_rules",
    "minijax.numpy.fft.stages",
    "minijax.randomness.key_rules",
    "minijax.randomness.generator_switches",
    "minijax.randomness.key_watch",
    "minijax.forward.trigamma",
    "minijax.numpy.linalg.norms_by_values",
    "minijax.compositions.universal",
    "minijax.cuda.finding",
    "minijax.mesh_maps.mesh_around",
    "minijax.mesh_maps.manual_axes",
    "minijax.spmd.sharding_pictures",
    "minijax.replicas.rendezvous",
    "minijax.replicas.sharded_maps",
    "minijax.replicas.varying",
    "minijax.spmd.spreading_rules",
    "minijax.spmd.mesh_programs",
    "minijax.spmd.program_ends",
    "minijax.experimental.checkify.mesh_rules",
    "minijax.spmd.spreading_windows",
    "minijax.spmd.spreading_places",
    "minijax.spmd.spreading_loops",
    "minijax.teams.exchange_steps",
    "minijax.teams.joint_exchanges",
    "minijax.teams.halls",
    "minijax.teams.turns",
    "minijax.teams.native_runs",
    "minijax.teams.quick_calls",
    "minijax.ranks.engines",
    "minijax.ranks.crossings",
    "minijax.ranks.shared_maps",
    "minijax.overlap.split_exchanges",
    "minijax.overlap.schedules",
    "minijax.ranks.direct_runs",
    "minijax.exporting.offering",
]
