// SPDX-License-Identifier: Apache-2.0

package calls

//go:generate go tool bpf2go -cc clang-16 -strip llvm-strip-16 -target bpfel,bpfeb -go-package calls steps steps.c -- -O2 -mcpu=v2 -nostdinc -Wall -Werror -Wextra -Wno-unused-parameter
