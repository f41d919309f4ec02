"""The tokens in the links of invitations. A sign-in or a new password or mail address invalidates them."""

from typing import Any

from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core import signing
from django.utils.crypto import constant_time_compare

from oauth.credentials import sha256_hex

INVITATION_DAYS = 7


class InvitationTokenGenerator(PasswordResetTokenGenerator):
    """Has its own lifetime, longer than PASSWORD_RESET_TIMEOUT: an invitation may wait in a mailbox."""

    key_salt = "oauth.accounts.invitation"

    def make_token(self, user: Any) -> str:
        return signing.dumps(self.hash_state(user), salt=self.key_salt)

    def check_token(self, user: Any, token: str | None) -> bool:
        try:
            state = signing.loads(token or "", salt=self.key_salt, max_age=INVITATION_DAYS * 24 * 3600)
        except signing.BadSignature:
            return False
        return constant_time_compare(state, self.hash_state(user))

    def hash_state(self, user: Any) -> str:
        return sha256_hex(self._make_hash_value(user, 0))


invitation_tokens = InvitationTokenGenerator()
