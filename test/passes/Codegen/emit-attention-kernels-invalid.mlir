// What the attention generator refuses: bodies that it would have to compute differently from what they say.
//
// RUN: descent-opt %s --emit-attention-kernels=cpu=haswell --split-input-file --verify-diagnostics

exec.kernel @other_op "attention" (%q: tensor<1x8x8xf32>) -> tensor<1x8x8xf32> {
  // expected-error @below {{'nn.relu' cannot be in a kernel of kind "attention"; only nn.split and nn.concat may stand beside the attention op}}
  %r = nn.relu %q : tensor<1x8x8xf32>
  %o = nn.attention %r, %q, %q heads 1 causal : tensor<1x8x8xf32>, tensor<1x8x8xf32>, tensor<1x8x8xf32>
  exec.yield %o : tensor<1x8x8xf32>
}

// -----

// expected-error @below {{a kernel of kind "attention_grad" must hold exactly one nn.attention_grad and no other attention op}}
exec.kernel @wrong_op "attention_grad" (%q: tensor<1x8x8xf32>) -> tensor<1x8x8xf32> {
  %o = nn.attention %q, %q, %q heads 1 causal : tensor<1x8x8xf32>, tensor<1x8x8xf32>, tensor<1x8x8xf32>
  exec.yield %o : tensor<1x8x8xf32>
}

// -----

// expected-error @below {{needs static shapes, not 'tensor<?x8x8xf32>'; bind-batch makes them static}}
exec.kernel @dynamic "attention" (%q: tensor<?x8x8xf32>) -> tensor<?x8x8xf32> {
  %o = nn.attention %q, %q, %q heads 1 causal : tensor<?x8x8xf32>, tensor<?x8x8xf32>, tensor<?x8x8xf32>
  exec.yield %o : tensor<?x8x8xf32>
}

// -----

exec.kernel @empty "attention" (%q: tensor<1x0x8xf32>) -> tensor<1x0x8xf32> {
  // expected-error @below {{has no elements to work on: q is 'tensor<1x0x8xf32>'}}
  %o = nn.attention %q, %q, %q heads 1 causal : tensor<1x0x8xf32>, tensor<1x0x8xf32>, tensor<1x0x8xf32>
  exec.yield %o : tensor<1x0x8xf32>
}

// -----

exec.kernel @other_axis "attention" (%qkv: tensor<3x8x8xf32>) -> tensor<1x8x8xf32> {
  // expected-error @below {{splits axis 0 of 'tensor<3x8x8xf32>'; an attention kernel can only read parts of the last axis in place}}
  %q, %k, %v = nn.split %qkv axis 0 sections 3 : tensor<3x8x8xf32>
  %o = nn.attention %q, %k, %v heads 1 causal : tensor<1x8x8xf32>, tensor<1x8x8xf32>, tensor<1x8x8xf32>
  exec.yield %o : tensor<1x8x8xf32>
}

// -----

exec.kernel @split_twice "attention" (%all: tensor<1x8x48xf32>) -> tensor<1x8x8xf32> {
  %a, %b = nn.split %all axis 2 sections 2 : tensor<1x8x48xf32>
  %q, %k, %v = nn.split %a axis 2 sections 3 : tensor<1x8x24xf32>
  // expected-error @below {{an operand is neither an input of the kernel nor a part of one}}
  %o = nn.attention %q, %k, %v heads 1 causal : tensor<1x8x8xf32>, tensor<1x8x8xf32>, tensor<1x8x8xf32>
  exec.yield %o : tensor<1x8x8xf32>
}

// -----

exec.kernel @twice "attention" (%q: tensor<1x8x8xf32>) -> tensor<1x16x8xf32> {
  // expected-error @below {{result 0 is used more than once; the kernel can write it to one place only}}
  %o = nn.attention %q, %q, %q heads 1 causal : tensor<1x8x8xf32>, tensor<1x8x8xf32>, tensor<1x8x8xf32>
  %y = nn.concat %o, %o axis 1 : tensor<1x8x8xf32>, tensor<1x8x8xf32>
  exec.yield %y : tensor<1x16x8xf32>
}

// -----

exec.kernel @joins_rows "attention" (%q: tensor<1x8x8xf32>) -> tensor<1x16x8xf32> {
  %o = nn.attention %q, %q, %q heads 1 causal : tensor<1x8x8xf32>, tensor<1x8x8xf32>, tensor<1x8x8xf32>
  // expected-error @below {{joins along axis 1 of 'tensor<1x16x8xf32>'; an attention kernel can only write parts of the last axis in place}}
  %y = nn.concat %o, %q axis 1 : tensor<1x8x8xf32>, tensor<1x8x8xf32>
  exec.yield %y : tensor<1x16x8xf32>
}

// -----

exec.kernel @foreign_part "attention" (%q: tensor<1x8x8xf32>) -> tensor<1x8x16xf32> {
  %o = nn.attention %q, %q, %q heads 1 causal : tensor<1x8x8xf32>, tensor<1x8x8xf32>, tensor<1x8x8xf32>
  %y = nn.concat %o, %q axis 2 : tensor<1x8x8xf32>, tensor<1x8x8xf32>
  // expected-error @below {{value 0 does not come from the attention op}}
  exec.yield %y : tensor<1x8x16xf32>
}

// -----

exec.kernel @no_output "attention" (%q: tensor<1x8x8xf32>) -> tensor<1x1x8xf32> {
  // expected-error @below {{its output must be yielded}}
  %o, %l = nn.attention %q, %q, %q heads 1 causal save_logsumexp : tensor<1x8x8xf32>, tensor<1x8x8xf32>, tensor<1x8x8xf32>
  exec.yield %l : tensor<1x1x8xf32>
}
