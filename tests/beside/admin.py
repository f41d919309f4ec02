from django import forms
from django.contrib import admin
from django.contrib.admin.helpers import ActionForm
from reviews.models import Review


class ShelfForm(ActionForm):
    shelf = forms.CharField(required=False)


@admin.register(Review)
class ReviewAdmin(admin.ModelAdmin):
    list_display = ["__str__", "stars"]
    list_editable = ["stars"]
    date_hierarchy = "book__created_at"
    action_form = ShelfForm
    save_as = True
    change_list_template = "beside/reviews.html"
