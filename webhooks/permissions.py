"""What each action on webhooks, deliveries and events needs: the same as in the admin."""

from collections.abc import Mapping, Sequence

CHANGE_ENDPOINT, VIEW_ENDPOINT = "webhooks.change_endpoint", "webhooks.view_endpoint"
ADD_ENDPOINT = "webhooks.add_endpoint"
VIEW_DELIVERY = "webhooks.view_delivery"

ENDPOINT_ACTIONS: Mapping[str, Sequence[str]] = {
    "list": [VIEW_ENDPOINT],
    "retrieve": [VIEW_ENDPOINT],
    "create": [ADD_ENDPOINT],
    "partial_update": [CHANGE_ENDPOINT],
    "destroy": ["webhooks.delete_endpoint"],
    "add_secret": [CHANGE_ENDPOINT],
    "promote": [CHANGE_ENDPOINT],
    "ping": [CHANGE_ENDPOINT],
    "replay": [CHANGE_ENDPOINT],
}
DELIVERY_ACTIONS: Mapping[str, Sequence[str]] = {
    "list": [VIEW_DELIVERY],
    "retrieve": [VIEW_DELIVERY],
    "redeliver": ["webhooks.change_delivery"],
}
EVENT_ACTIONS: Mapping[str, Sequence[str]] = {"follow": ["webhooks.view_event"]}
# The owner of an endpoint that gets events has one of them.
OWNER_PERMISSIONS = [ADD_ENDPOINT, CHANGE_ENDPOINT]
