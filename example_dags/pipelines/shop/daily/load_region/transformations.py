"""A day's orders of one region."""


def transform(sources, context):
    """Return a frame for each output of config.yaml."""
    orders = sources["feed"]
    region = context.variables["region"]
    return {"orders": orders[orders["region"] == region].assign(dt=context.dt)}
