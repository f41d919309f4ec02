"""The container image, on a base that debootstrap makes, and run as an engine would. An engine itself is not needed.

`.ci/run` builds it and sets LIBRARY_IMAGE to its folder; elsewhere these tests are not collected.
"""
