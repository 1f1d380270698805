"""An hour's orders."""


def transform(sources, context):
    """Return a frame for each output of config.yaml."""
    orders = sources["feed"]
    hour = context.variables["hour"]
    return {"orders": orders[orders["hour"] == int(hour)].assign(dt=context.dt)}
