"""Following a study as it runs: functions of a trial, TensorBoard, MLflow."""
