"""Line graphs of the report: their scales and axes, and dates as text."""
