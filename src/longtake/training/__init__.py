"""Training of what longtake can be given: the head that scores clips against texts. Needs the extra ``train``."""
