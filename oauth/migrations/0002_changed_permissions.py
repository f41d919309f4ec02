from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("oauth", "0001_squashed_0008_notices")]
    operations = [migrations.AddField("ChangedRights", "permissions", models.JSONField(null=True))]
