#!/bin/sh
# Makes or updates the two databases of the Temporal server. What is there stays,
# so it may run before every start. SQL_HOST, SQL_PORT, SQL_USER, SQL_PASSWORD and
# SQL_PLUGIN, which temporal-sql-tool reads itself, say where.
set -eu

for schema in temporal visibility; do
	database=temporal
	test $schema = temporal || database=temporal_visibility
	export SQL_DATABASE=$database
	temporal-sql-tool create-database
	temporal-sql-tool setup-schema --version 0.0
	temporal-sql-tool update-schema --schema-name postgresql/v12/$schema
done
