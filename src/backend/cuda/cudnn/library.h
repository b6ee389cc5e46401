// cuDNN's library, which is opened when it is first asked for, so that a program built with cuDNN starts without it.
#pragma once

namespace tokamak::cuda {

/// Whether libcudnn.so.9 opens here. Without it no function of cuDNN may be called.
bool cudnn_opens();

}  // namespace tokamak::cuda
