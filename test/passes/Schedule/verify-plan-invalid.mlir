// A plan in which bytes serve two purposes at once is refused, whoever made it.
// RUN: descent-opt --verify-plan --split-input-file --verify-diagnostics %s

// expected-error @+1 {{a planned module has exactly one exec.arena}}
module {
}

// -----

module {
  exec.arena size 64 persistent 0 lower_bound 64 parameters 0 gradients 0 optimizer 0 activations 0 workspace 64
  exec.program @step {
    // expected-error @+1 {{lies at [0, 256) but the arena has 64 bytes}}
    %0 = exec.buffer "a" "workspace" at 0 live [0, 1] : memref<64xf32>
  }
}

// -----

module {
  exec.arena size 512 persistent 0 lower_bound 64 parameters 0 gradients 0 optimizer 0 activations 0 workspace 512
  exec.program @step {
    // expected-error @+1 {{starts at byte 4, which is not a multiple of 64}}
    %0 = exec.buffer "a" "workspace" at 4 live [0, 1] : memref<64xf32>
  }
}

// -----

module {
  exec.arena size 512 persistent 0 lower_bound 512 parameters 0 gradients 0 optimizer 0 activations 0 workspace 512
  exec.program @step {
    %0 = exec.buffer "a" "workspace" at 0 live [0, 1] : memref<64xf32>
    // expected-error @+1 {{overlaps a buffer that lives at the same time, at byte 0}}
    %1 = exec.buffer "b" "workspace" at 128 live [1, 2] : memref<64xf32>
  }
}

// -----

module {
  exec.arena size 512 persistent 256 lower_bound 512 parameters 256 gradients 0 optimizer 0 activations 0 workspace 256
  exec.program @step {
    // expected-error @+1 {{lies in the persistent part of the arena}}
    %0 = exec.buffer "a" "workspace" at 0 live [0, 1] : memref<64xf32>
  }
}

// -----

// A sum over columns reads elements after it has written others: not in place.
module {
  exec.arena size 512 persistent 0 lower_bound 512 parameters 0 gradients 0 optimizer 0 activations 0 workspace 512
  exec.kernel @swap "copy" (%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = nn.transpose %x [1, 0] : tensor<8x8xf32>
    exec.yield %0 : tensor<8x8xf32>
  }
  exec.storage @x "parameters" at 0 : tensor<8x8xf32>
  exec.program @step {
    %0 = exec.get @x at 0 : memref<8x8xf32>
    // expected-error @+1 {{writes result 0 over operand 0, which kernel @swap does not allow}}
    exec.run @swap ins(%0 : memref<8x8xf32>) outs(%0 : memref<8x8xf32>)
  }
}

// -----

module {
  exec.arena size 512 persistent 0 lower_bound 512 parameters 0 gradients 0 optimizer 0 activations 0 workspace 512
  exec.kernel @next "rows" (%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = nn.neg %x : tensor<4xf32>
    exec.yield %0 : tensor<4xf32>
  }
  exec.program @step {
    %0 = exec.buffer "a" "workspace" at 0 live [0, 1] : memref<4xf32>
    %1 = exec.buffer "b" "workspace" at 64 live [0, 1] : memref<4xf32>
    // expected-error @+1 {{reads operand 0 before any launch wrote it}}
    exec.run @next ins(%0 : memref<4xf32>) outs(%1 : memref<4xf32>)
  }
}

// -----

module {
  exec.arena size 512 persistent 0 lower_bound 512 parameters 0 gradients 0 optimizer 0 activations 0 workspace 512
  exec.kernel @next "rows" (%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = nn.neg %x : tensor<4xf32>
    exec.yield %0 : tensor<4xf32>
  }
  exec.storage @x "inputs" at 0 : tensor<4xf32>
  exec.program @step {
    %0 = exec.get @x at 0 : memref<4xf32>
    %1 = exec.buffer "b" "workspace" at 64 live [3, 4] : memref<4xf32>
    // expected-error @+1 {{is launch 0 but uses a buffer that lives during [3, 4]}}
    exec.run @next ins(%0 : memref<4xf32>) outs(%1 : memref<4xf32>)
  }
}

// -----

module {
  exec.arena size 512 persistent 0 lower_bound 512 parameters 0 gradients 0 optimizer 0 activations 0 workspace 512
  exec.kernel @next "rows" (%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = nn.neg %x : tensor<4xf32>
    exec.yield %0 : tensor<4xf32>
  }
  exec.storage @x "inputs" at 0 : tensor<4xf32>
  exec.program @step {
    %0 = exec.get @x at 0 : memref<4xf32>
    %1 = exec.buffer "b" "workspace" at 64 live [0, 1] : memref<4xf32>
    %2 = exec.buffer "c" "workspace" at 128 live [1, 2] : memref<4xf32>
    // expected-note @+1 {{launch 0 is here}}
    exec.run @next ins(%0 : memref<4xf32>) outs(%1 : memref<4xf32>) {record = 0 : i64}
    // expected-error @+1 {{is launch 1 and touches bytes of launch 0 on another stream without waiting for it}}
    exec.run @next ins(%1 : memref<4xf32>) outs(%2 : memref<4xf32>) {stream = 1 : i64}
  }
}

// -----

module {
  exec.arena size 512 persistent 0 lower_bound 512 parameters 0 gradients 0 optimizer 0 activations 0 workspace 512
  exec.kernel @next "rows" (%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = nn.neg %x : tensor<4xf32>
    exec.yield %0 : tensor<4xf32>
  }
  exec.storage @x "inputs" at 0 : tensor<4xf32>
  exec.program @step {
    %0 = exec.get @x at 0 : memref<4xf32>
    %1 = exec.buffer "b" "workspace" at 64 live [0, 1] : memref<4xf32>
    // expected-error @+1 {{waits for event 7, which no launch before it records}}
    exec.run @next ins(%0 : memref<4xf32>) outs(%1 : memref<4xf32>) {stream = 1 : i64, waits = array<i64: 7>}
  }
}
