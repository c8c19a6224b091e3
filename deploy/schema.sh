# Creates or updates the two databases of the Temporal server. Existing data is kept, so it may
# run before each start. temporal-sql-tool reads SQL_HOST, SQL_PORT, SQL_USER, SQL_PASSWORD and
# SQL_PLUGIN.
set -eu

for schema in temporal visibility; do
	database=temporal
	test $schema = temporal || database=temporal_visibility
	export SQL_DATABASE=$database
	temporal-sql-tool create-database
	temporal-sql-tool setup-schema --version 0.0
	temporal-sql-tool update-schema --schema-name postgresql/v12/$schema
done
