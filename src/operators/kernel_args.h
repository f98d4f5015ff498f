// Parameter and result types of kernels in the operator tables: one parameter type for each kind of argument.
// SCONCE_MAP pastes a prefix to each argument of a row. Every kernel includes this header, so it includes little.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "src/operators/arguments.h"

#define KER_In(n) const ::sconce::Tensor& n
#define KER_Out(n) ::sconce::Tensor& n
#define KER_OptIn(n) const ::sconce::Tensor* n
#define KER_NullableIn(n) const ::sconce::Tensor* n
#define KER_List(n) ::sconce::TensorList n
#define KER_OptList(n) ::sconce::OptTensorList n
#define KER_Int(n) int64_t n
#define KER_OptInt(n) std::optional<int64_t> n
#define KER_Ints(n) ::sconce::IntSpan n
#define KER_OptInts(n) std::optional<::sconce::IntSpan> n
#define KER_Real(n) double n
#define KER_OptReal(n) std::optional<double> n
#define KER_OptReals(n) std::span<const double* const> n
#define KER_OptRealList(n) std::optional<std::span<const double>> n
#define KER_Bool(n) bool n
#define KER_OptBool(n) std::optional<bool> n
#define KER_Bools(n) std::span<const int32_t> n
#define KER_Type(n) ::sconce::DType n
#define KER_OptType(n) ::sconce::OptType n
#define KER_OptEnum(n) ::sconce::OptEnum n
#define KER_OptDevice(n) ::sconce::OptDevice n
#define KER_Str(n) std::string_view n
#define KER_OptStr(n) std::optional<std::string_view> n
#define KER_OptGenerator(n) ::sconce::Generator* n

#define RET_TYPE_0 void
#define RET_TYPE_1 ::sconce::Tensor
#define RET_TYPE_2 std::array<::sconce::Tensor, 2>
#define RET_TYPE_3 std::array<::sconce::Tensor, 3>
#define RET_TYPE_4 std::array<::sconce::Tensor, 4>
#define RET_TYPE_5 std::array<::sconce::Tensor, 5>
#define RET_TYPE_6 std::array<::sconce::Tensor, 6>

// Written out by hand: recursive macros would add 20 ms of compile time to every kernel.
#define SCONCE_MAP(prefix, ...) __VA_OPT__(SCONCE_MAP_1(prefix, __VA_ARGS__))
#define SCONCE_MAP_1(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_2(p, __VA_ARGS__))
#define SCONCE_MAP_2(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_3(p, __VA_ARGS__))
#define SCONCE_MAP_3(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_4(p, __VA_ARGS__))
#define SCONCE_MAP_4(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_5(p, __VA_ARGS__))
#define SCONCE_MAP_5(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_6(p, __VA_ARGS__))
#define SCONCE_MAP_6(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_7(p, __VA_ARGS__))
#define SCONCE_MAP_7(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_8(p, __VA_ARGS__))
#define SCONCE_MAP_8(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_9(p, __VA_ARGS__))
#define SCONCE_MAP_9(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_10(p, __VA_ARGS__))
#define SCONCE_MAP_10(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_11(p, __VA_ARGS__))
#define SCONCE_MAP_11(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_12(p, __VA_ARGS__))
#define SCONCE_MAP_12(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_13(p, __VA_ARGS__))
#define SCONCE_MAP_13(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_14(p, __VA_ARGS__))
#define SCONCE_MAP_14(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_15(p, __VA_ARGS__))
#define SCONCE_MAP_15(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_16(p, __VA_ARGS__))
#define SCONCE_MAP_16(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_17(p, __VA_ARGS__))
#define SCONCE_MAP_17(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_18(p, __VA_ARGS__))
#define SCONCE_MAP_18(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_19(p, __VA_ARGS__))
#define SCONCE_MAP_19(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_20(p, __VA_ARGS__))
#define SCONCE_MAP_20(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_21(p, __VA_ARGS__))
#define SCONCE_MAP_21(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_22(p, __VA_ARGS__))
#define SCONCE_MAP_22(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_23(p, __VA_ARGS__))
#define SCONCE_MAP_23(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_24(p, __VA_ARGS__))
#define SCONCE_MAP_24(p, a, ...) p##a __VA_OPT__(, SCONCE_MAP_25(p, __VA_ARGS__))
