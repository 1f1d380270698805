"""A day's orders."""


def transform(sources, context):
    """Return a frame for each output of config.yaml."""
    orders = sources["feed"]
    return {"orders": orders.assign(dt=context.dt)}
