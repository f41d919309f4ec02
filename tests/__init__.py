import gc

gc.set_threshold(500_000)
