"""Taking a trained network away: code, ONNX, safetensors, JSON. (``nasbot.export`` is the function.)"""
