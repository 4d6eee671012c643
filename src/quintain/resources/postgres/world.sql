-- What every world has beside its own tables: clock, chance, and what keeps an asker within the views of a role.
-- The schema "main" holds the tables, as it does in SQLite; functions here stand in the search path before PostgreSQL's.

CREATE SCHEMA main;
CREATE SCHEMA quintain;
CREATE SCHEMA quintain_ask;
REVOKE ALL ON SCHEMA public FROM PUBLIC;

CREATE TABLE quintain.reader (role text PRIMARY KEY, name text NOT NULL);
CREATE TABLE quintain.base (name text PRIMARY KEY, digest text NOT NULL);

CREATE FUNCTION quintain.refuse(what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '%', what USING ERRCODE = 'QT001';
END $$;

-- Time: the world's clock, in seconds since 1970.

CREATE FUNCTION quintain.now() RETURNS timestamptz LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
DECLARE
  seconds text := pg_catalog.current_setting('quintain.now');
BEGIN
  IF seconds = '' THEN
    PERFORM quintain.refuse('now() needs a world: make the database a field of a State, or bind() it');
  END IF;
  RETURN pg_catalog.to_timestamp(seconds::float8);
END $$;
CREATE FUNCTION quintain.transaction_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT quintain.now() $$;
CREATE FUNCTION quintain.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT quintain.now() $$;
CREATE FUNCTION quintain.clock_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT quintain.now() $$;
CREATE FUNCTION quintain.timeofday() RETURNS text LANGUAGE sql STABLE AS $$ SELECT quintain.now()::text $$;
CREATE FUNCTION quintain.age(timestamptz) RETURNS interval LANGUAGE sql STABLE AS
  $$ SELECT pg_catalog.age(quintain.now()::date, $1) $$;
CREATE FUNCTION quintain.age(timestamp) RETURNS interval LANGUAGE sql STABLE AS
  $$ SELECT pg_catalog.age(quintain.now()::date::timestamp, $1) $$;

-- Chance: the n-th draw is a hash of n under the key of the world's rng, whose counter moves on.

CREATE FUNCTION quintain.draw() RETURNS bytea LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  key text := current_setting('quintain.key');
  n bigint := current_setting('quintain.counter')::bigint + 1;
BEGIN
  IF key = '' THEN
    PERFORM quintain.refuse('random() needs a world: make the database a field of a State, or bind() it');
  END IF;
  PERFORM set_config('quintain.counter', n::text, false);
  RETURN sha256(convert_to(key || '/' || n, 'UTF8'));
END $$;
CREATE FUNCTION quintain.random() RETURNS float8 LANGUAGE sql VOLATILE AS
  $$ SELECT (('x' || encode(substr(d, 1, 7), 'hex'))::bit(56)::bigint >> 3)::float8 / 9007199254740992 FROM quintain.draw() AS d $$;
CREATE FUNCTION quintain.gen_random_uuid() RETURNS uuid LANGUAGE sql VOLATILE AS
  $$ SELECT encode(set_byte(set_byte(substr(d, 1, 16), 6, get_byte(d, 6) & 15 | 64), 8, get_byte(d, 8) & 63 | 128), 'hex')::uuid
     FROM quintain.draw() AS d $$;

CREATE FUNCTION quintain.setseed(float8) RETURNS void LANGUAGE sql AS
  $$ SELECT quintain.refuse('setseed(): random numbers are the world''s') $$;
CREATE FUNCTION quintain.random(integer, integer) RETURNS integer LANGUAGE sql AS
  $$ SELECT $1 + floor(quintain.random() * ($2 - $1 + 1))::integer $$;
CREATE FUNCTION quintain.random(bigint, bigint) RETURNS bigint LANGUAGE sql AS
  $$ SELECT $1 + floor(quintain.random() * ($2 - $1 + 1))::bigint $$;
CREATE FUNCTION quintain.random_normal(float8 DEFAULT 0, float8 DEFAULT 1) RETURNS float8 LANGUAGE sql AS
  $$ SELECT $1 + $2 * sqrt(-2 * ln(1 - quintain.random())) * cos(2 * pi() * quintain.random()) $$;
CREATE FUNCTION quintain.random(numeric, numeric) RETURNS numeric LANGUAGE sql AS
  $$ SELECT quintain.refuse('random(numeric, numeric): draw integers'); SELECT 0::numeric $$;
CREATE FUNCTION quintain.uuidv4() RETURNS uuid LANGUAGE sql VOLATILE AS $$ SELECT quintain.gen_random_uuid() $$;
CREATE FUNCTION quintain.uuidv7() RETURNS uuid LANGUAGE sql AS
  $$ SELECT quintain.refuse('uuidv7() reads the machine''s clock: write gen_random_uuid()'); SELECT NULL::uuid $$;

-- Numbers that the server gives follow those that were given to it, as in SQLite.

CREATE FUNCTION quintain.follow() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  counter text := pg_get_serial_sequence(format('%I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME), TG_ARGV[0]);
  given bigint;
  last bigint;
BEGIN
  EXECUTE format('SELECT max(%I) FROM fresh', TG_ARGV[0]) INTO given;
  EXECUTE format('SELECT last_value - (NOT is_called)::integer FROM %s', counter) INTO last;
  IF given > last THEN
    PERFORM setval(counter, given);
  END IF;
  RETURN NULL;
END $$;

-- Who asks: compares with numbers and with text.

CREATE TYPE quintain.asker AS (name text);
CREATE FUNCTION quintain.number(quintain.asker) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT ($1).name::bigint $$;
CREATE FUNCTION quintain.text(quintain.asker) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT ($1).name $$;
CREATE CAST (quintain.asker AS bigint) WITH FUNCTION quintain.number(quintain.asker) AS IMPLICIT;
CREATE CAST (quintain.asker AS text) WITH FUNCTION quintain.text(quintain.asker) AS IMPLICIT;
CREATE FUNCTION quintain.who() RETURNS quintain.asker LANGUAGE sql STABLE SECURITY DEFINER AS
  $$ SELECT ROW(nullif(pg_catalog.current_setting('quintain.who'), ''))::quintain.asker $$;

-- What an asker cannot call: whatever changes something, waits, or tells of the server and not of the world.

DO $$
DECLARE
  one regprocedure;
BEGIN
  FOR one IN
    SELECT oid FROM pg_proc
    WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND proname <> 'pg_typeof'
      AND (provolatile = 'v' OR proname ~ '^(pg_|inet_|has_|lo_|txid_|to_reg|.*_to_xml|.*_xmlschema)'
           OR proname IN ('now', 'transaction_timestamp', 'statement_timestamp', 'current_setting', 'version',
                          'current_database', 'current_schemas', 'row_security_active', 'repeat', 'lpad', 'rpad')
           OR (proname = 'age' AND pronargs = 1 AND proargtypes[0] <> 'xid'::regtype))
  LOOP
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', one);
  END LOOP;
END $$;
REVOKE SELECT ON ALL TABLES IN SCHEMA pg_catalog, information_schema FROM PUBLIC;

CREATE FUNCTION quintain_ask.bounded(size bigint) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF size > 1000000 THEN
    RAISE EXCEPTION 'string or blob too big' USING ERRCODE = 'QT001';
  END IF;
END $$;
CREATE FUNCTION quintain_ask.repeat(text, integer) RETURNS text LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER AS $$
BEGIN
  PERFORM quintain_ask.bounded(octet_length($1)::bigint * $2);
  RETURN pg_catalog.repeat($1, $2);
END $$;
CREATE FUNCTION quintain_ask.lpad(text, integer, text DEFAULT ' ') RETURNS text LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER AS $$
BEGIN
  PERFORM quintain_ask.bounded($2);
  RETURN pg_catalog.lpad($1, $2, $3);
END $$;
CREATE FUNCTION quintain_ask.rpad(text, integer, text DEFAULT ' ') RETURNS text LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER AS $$
BEGIN
  PERFORM quintain_ask.bounded($2);
  RETURN pg_catalog.rpad($1, $2, $3);
END $$;

REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA quintain FROM PUBLIC;
GRANT EXECUTE ON FUNCTION quintain.now(), quintain.transaction_timestamp(), quintain.statement_timestamp(),
  quintain.clock_timestamp(), quintain.timeofday(), quintain.age(timestamptz), quintain.age(timestamp),
  quintain.who(), quintain.number(quintain.asker), quintain.text(quintain.asker) TO PUBLIC;
GRANT USAGE ON SCHEMA quintain, quintain_ask TO PUBLIC;
