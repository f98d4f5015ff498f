"""Operators that have no rule on purpose: nothing between an input and an output may call them."""
from sconce._rows.registry import refuse

RANDOM = "draws random numbers"
refuse("rand rand_like randint randint_like randn randn_like randperm bernoulli multinomial normal normal_functional uniform exponential "
       "cauchy geometric log_normal poisson binomial random rrelu rrelu_with_noise rrelu_with_noise_functional "
       "_fused_dropout alpha_dropout feature_dropout _sample_dirichlet _standard_gamma prims.inductor_random prims.inductor_randint "
       "fractional_max_pool2d fractional_max_pool3d", RANDOM)
refuse("fractional_max_pool2d_backward fractional_max_pool3d_backward", "is the gradient of a random choice")

COUNTED = "the number of its results depends on values of all rows"
refuse("nonzero nonzero_static nonzero_numpy argwhere masked_select masked_scatter masked_scatter_backward _unique2 unique_dim "
       "unique_consecutive _unique unique_dim_consecutive", COUNTED)
refuse("bincount histc histogram histogram_bin_ct _histogramdd_from_bin_cts _histogramdd_bin_edges _histogramdd_from_bin_tensors",
       "counts all rows of the batch")
refuse("equal is_nonzero item _local_scalar_dense allclose", "makes one value of all rows")
refuse("as_strided_copy as_strided_scatter resize resize_as set _reshape_alias resize_ resize_as_ set_ _unsafe_masked_index "
       "_unsafe_masked_index_put_accumulate", "addresses memory beyond its row")
refuse("torchvision.nms", "compares every box with every other")
refuse("torchvision.roi_align torchvision.roi_pool torchvision.ps_roi_align torchvision.ps_roi_pool",
       "takes from the picture that a region names by its number")
refuse("fill_ bernoulli_", "writes a tensor in place")
refuse("put diagonal_scatter trace block_diag cartesian_prod combinations meshgrid vander kron tensordot", "relates elements of all rows")
refuse("_pdist_forward _pdist_backward _cdist_backward pdist corrcoef cov", "relates all rows to each other")
refuse("segment_reduce _segment_reduce_backward _grouped_mm _scaled_grouped_mm _nested_tensor_from_mask "
       "_pack_padded_sequence _pad_packed_sequence _embedding_bag_dense_backward _embedding_bag_per_sample_weights_backward",
       "takes pieces of the batch whose length depends on values")
refuse("embedding_dense_backward convolution_backward native_layer_norm_backward native_group_norm_backward native_batch_norm_backward "
       "_scaled_dot_product_flash_attention_for_cpu_backward _scaled_dot_product_flash_attention_backward "
       "_scaled_dot_product_efficient_attention_backward _scaled_dot_product_cudnn_attention_backward "
       "_scaled_dot_product_fused_attention_overrideable_backward grid_sampler_2d_backward grid_sampler_3d_backward "
       "soft_margin_loss_backward nll_loss_backward nll_loss2d_backward mse_loss_backward smooth_l1_loss_backward huber_loss_backward "
       "binary_cross_entropy_backward _fused_rms_norm_backward _thnn_fused_lstm_cell_backward_impl mkldnn_rnn_layer_backward "
       "cudnn_batch_norm_backward miopen_batch_norm_backward select_backward slice_backward unfold_backward",
       "is a gradient, which sums over the batch")
refuse("nll_loss nll_loss_forward nll_loss2d nll_loss2d_forward mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy "
       "binary_cross_entropy_with_logits kl_div soft_margin_loss multi_margin_loss multilabel_margin_loss "
       "multilabel_margin_loss_forward _ctc_loss ctc_loss", "is a loss, which joins the rows")
refuse("_fused_moving_avg_obs_fq_helper _fused_moving_avg_obs_fq_helper_functional quantized_decomposed.choose_qparams "
       "quantized_decomposed.choose_qparams_symmetric "
       "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams _fake_quantize_learnable_per_tensor_affine "
       "_fake_quantize_learnable_per_channel_affine _choose_qparams_per_tensor",
       "chooses one scale for all rows")
refuse("_cudnn_rnn _thnn_fused_lstm_cell _thnn_fused_gru_cell miopen_rnn", "keeps the batch in a layout that no rule follows")
refuse("_dyn_quant_pack_4bit_weight _dyn_quant_matmul_4bit _wrapped_linear_prepack _wrapped_quantized_linear_prepacked "
       "wrapped_fbgemm_pack_gemm_matrix_fp16 wrapped_fbgemm_linear_fp16_weight quantized.wrapped_fbgemm_linear_fp16_weight "
       "quantized.wrapped_fbgemm_pack_gemm_matrix_fp16 _quantized.wrapped_fbgemm_pack_gemm_matrix_fp16 "
       "_quantized.wrapped_fbgemm_linear_fp16_weight _quantized._wrapped_linear_prepack _quantized.wrapped_quantized_linear "
       "_quantized._wrapped_quantized_linear_prepacked _convert_weight_to_int4pack _convert_weight_to_int4pack_for_cpu",
       "packs numbers in a way that no rule follows")
# These are made by the compiler, after the proof; a model that calls them by name has no proof.
refuse("mkldnn._convolution_pointwise mkldnn._convolution_pointwise_ mkldnn._convolution_transpose_pointwise mkldnn._linear_pointwise "
       "mkl._mkl_linear onednn.qlinear_pointwise onednn.qconv_pointwise onednn.qconv2d_pointwise onednn.qlinear_prepack "
       "onednn.qconv_prepack", "is the compiler's own")
