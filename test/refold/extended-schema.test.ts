import SchemaBuilder, { BasePlugin, type PothosOutputFieldConfig, type SchemaTypes } from '@pothos/core';
import { type GraphQLFieldResolver, parse } from 'graphql';
import { createClient } from 'graphql-sse';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRefold, defineConfig, extendSchema, type Refold } from '../../src/index.ts';
import { auth, authorV1, boardV1, noteV1, type TokenOptions, token, writeNote } from '../security/notes.ts';
import { composers } from '../support/federation.ts';
import { untilActive, untilCaughtUp } from '../support/patient.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';

declare global {
  namespace PothosSchemaTypes {
    interface Plugins<Types extends SchemaTypes> {
      marking: MarkingPlugin<Types>;
    }
    interface SchemaBuilderOptions<Types extends SchemaTypes> {
      marking?: { readonly fields: readonly string[]; readonly mark: (context: Types['Context']) => string };
    }
  }
}

/** Marks what the resolvers of some fields return. */
class MarkingPlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override wrapResolve(
    resolve: GraphQLFieldResolver<unknown, Types['Context'], object>,
    { parentType, name }: PothosOutputFieldConfig<Types>,
  ): GraphQLFieldResolver<unknown, Types['Context'], object> {
    const { marking } = this.builder.options;
    if (!marking?.fields.includes(`${parentType}.${name}`)) return resolve;
    return async (root, args, context, info) => `${await resolve(root, args, context, info)} ${marking.mark(context)}`;
  }
}
SchemaBuilder.registerPlugin('marking', MarkingPlugin);

interface Added {
  readonly greeting: string;
}

const extension = extendSchema<Added, { Objects: { Place: { readonly name: string } } }>(
  {
    plugins: ['marking'],
    pluginOptions: { marking: { fields: ['Query.hello', 'Board.board'], mark: ({ greeting }) => greeting } },
    context: async ({ viewer }) => ({ greeting: viewer === 'system' ? 'from here' : `to ${viewer.id ?? 'all'}` }),
  },
  ({ builder, readModel, rowField }) => {
    const notes = readModel('note');
    const authors = readModel('author');
    const boards = readModel('board');

    builder.objectType('Place', { fields: (t) => ({ name: t.exposeString('name') }) });
    builder.queryFields((t) => ({
      hello: t.string({ access: 'public', resolve: (_, __, { greeting }) => `hello (${greeting})` }),
      place: t.field({ type: 'Place', access: 'public', resolve: () => ({ name: 'here' }) }),
      myNotes: t.field({
        type: notes.connectionType,
        args: notes.connectionArgs,
        resolve: (_, args, context, info) => notes.findConnection(args, context, info),
      }),
      noteOf: t.field({
        type: notes.rowType,
        nullable: true,
        args: { id: t.arg.string({ required: true }) },
        resolve: (_, { id }, context, info) => notes.findByKey({ noteId: id }, context, info),
      }),
      secretLength: t.int({
        args: { id: t.arg.string({ required: true }) },
        async resolve(_, { id }, context, info) {
          const note = await notes.findByKey({ noteId: id }, context, info, { needs: ['secret'] });
          return String(note?.secret).length;
        },
      }),
      notesWithSecret: t.int({
        nullable: true,
        args: { secret: t.arg.string({ required: true }) },
        resolve: (_, { secret }, context, info) => notes.count({ secret: { eq: secret } }, context, info),
      }),
      publicBoard: t.field({
        type: boards.rowType,
        nullable: true,
        access: 'public',
        resolve: (_, __, context, info) => boards.findByKey({ board: 'all' }, context, info),
      }),
      audit: t.string({ access: (viewer) => viewer.roles.includes('auditor'), resolve: () => 'all is well' }),
      counts: t.intList({
        async resolve(_, __, context, info) {
          const before = await notes.count(null, context, info);
          await writeAnother('north');
          return [before, await notes.count(null, context, info)];
        },
      }),
    }));
    builder.mutationField('writeTwice', (t) =>
      t.field({
        type: authors.rowType,
        nullable: true,
        args: { id: t.arg.string({ required: true }), tenant: t.arg.string({ required: true }) },
        async resolve(_, { id, tenant }, context, info) {
          const input = { tenantId: tenant, authorId: id, text: 'twice' };
          await context.commands.execute(writeNote, { ...input, noteId: `${id}-1` }, {});
          const { position } = await context.commands.execute(writeNote, { ...input, noteId: `${id}-2` }, {});
          return authors.findByKey({ authorId: id }, context, info, { after: position });
        },
      }),
    );
    builder.subscriptionField('noteTicks', (t) =>
      t.field({
        type: notes.rowType,
        nullable: true,
        args: { id: t.arg.string({ required: true }) },
        async *subscribe(_, { id }) {
          yield id;
        },
        resolve: (id, _, context, info) => notes.findByKey({ noteId: id }, context, info),
      }),
    );
    builder.subscriptionField('ticks', (t) =>
      t.int({
        async *subscribe() {
          yield 1;
        },
        resolve: (tick) => tick as number,
      }),
    );
    rowField('author', 'latest', ['authorId'], (t) =>
      t.field({
        type: notes.rowType,
        nullable: true,
        async resolve({ authorId }, _, context, info) {
          const query = { orderBy: [{ noteId: 'DESC' }], first: 1 };
          const [latest = null] = await notes.findRelated('authorId', authorId, query, context, info);
          return latest;
        },
      }),
    );
  },
);

let database: TestDatabase;
let refold: Refold;
let written = 0;

async function writeAnother(tenantId: string): Promise<void> {
  written++;
  const input = { noteId: `${tenantId}-more-${written}`, tenantId, authorId: `${tenantId}-author`, text: 'more' };
  await refold.execute(writeNote, input);
  await untilCaughtUp(refold);
}

beforeAll(async () => {
  database = await createTestDatabase();
  const config = defineConfig({
    projections: [noteV1, authorV1, boardV1],
    commands: [writeNote],
    auth,
    schema: extension,
    database: { url: database.url },
    gateway: { port: 0, federation: true, positionTimeout: 300_000 },
  });
  refold = await createRefold(config, { logger: pino({ level: 'silent' }) });
  for (const { id } of [noteV1, authorV1, boardV1]) await untilActive(refold, id);
  for (const tenantId of ['north', 'south'])
    for (const text of ['one', 'two'])
      await refold.execute(writeNote, {
        noteId: `${tenantId}-${text}`,
        tenantId,
        authorId: `${tenantId}-author`,
        text,
      });
  await untilCaughtUp(refold);
});

afterAll(async () => {
  await refold.stop();
  await database.drop();
});

interface Answer {
  readonly data?: Record<string, unknown> | null;
  readonly errors?: readonly { message: string; path?: unknown; extensions: { code: string } }[];
}

async function ask(query: string, options?: TokenOptions): Promise<Answer> {
  const response = await fetch(`${refold.url}/graphql`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(options ? { authorization: `Bearer ${await token(options)}` } : {}),
    },
    body: JSON.stringify({ query }),
  });
  return (await response.json()) as Answer;
}

const north: TokenOptions = { sub: 'ada', tenant: 'north' };

describe('without a token', () => {
  test.each([
    ['a query', 'myNotes', '{ myNotes { nodes { text } } }'],
    ['a mutation', 'writeTwice', 'mutation { writeTwice(id: "x", tenant: "north") { notes } }'],
    ['a query with a rule', 'audit', '{ audit }'],
  ])('%s is refused, and the error names the option that opens it', async (_, field, query) => {
    const { errors } = await ask(query);
    expect(errors?.[0]?.extensions.code).toBe('UNAUTHENTICATED');
    expect(errors?.[0]?.message).toBe(
      `'${field}' needs authentication. Only a field that is declared with access: 'public' is open to everybody.`,
    );
  });

  test('a subscription is refused', async () => {
    const client = createClient({ url: `${refold.url}/graphql`, retryAttempts: 0 });
    const results = client.iterate({ query: 'subscription { ticks }' });
    const { value } = await results.next();
    expect(value?.errors?.[0]).toMatchObject({
      message: expect.stringContaining("'ticks' needs authentication."),
      extensions: { code: 'UNAUTHENTICATED' },
    });
    client.dispose();
  });

  test('a field with public access answers, under the rules of what it reads', async () => {
    expect((await ask('{ place { name } publicBoard { notes } }')).data).toEqual({
      place: { name: 'here' },
      publicBoard: { notes: expect.any(Number) },
    });
  });

  test('the generated fields stay as they are', async () => {
    expect((await ask('{ notes { nodes { text } } }')).errors?.[0]?.extensions.code).toBe('UNAUTHENTICATED');
    expect((await ask('{ board(board: "all") { notes } }')).errors).toBeUndefined();
  });
});

test('a rule decides by the viewer', async () => {
  expect((await ask('{ audit }', north)).errors?.[0]).toMatchObject({
    message: "You may not use 'audit'.",
    extensions: { code: 'FORBIDDEN' },
  });
  expect((await ask('{ audit }', { ...north, roles: ['auditor'] })).data).toEqual({ audit: 'all is well' });
  // The program itself.
  expect((await refold.graphql('{ audit }')).data).toEqual({ audit: 'all is well' });
});

test('rows and columns follow the access rules of the viewer', async () => {
  const { data } = await ask(
    '{ myNotes { totalCount nodes { noteId author { authorId latest { noteId } } } } }',
    north,
  );
  expect(JSON.stringify(data)).toContain('north-one');
  expect(JSON.stringify(data)).not.toContain('south');
  expect((await ask('{ noteOf(id: "south-one") { text } }', north)).data).toEqual({ noteOf: null });
  const forbidden = { extensions: { code: 'FORBIDDEN' } };
  expect((await ask('{ noteOf(id: "north-one") { secret } }', north)).errors?.[0]).toMatchObject(forbidden);
  expect((await ask('{ secretLength(id: "north-one") }', north)).errors?.[0]).toMatchObject(forbidden);
  expect((await ask('{ notesWithSecret(secret: "none") }', north)).errors?.[0]).toMatchObject(forbidden);
  const auditor = { ...north, roles: ['auditor'] };
  expect((await ask('{ noteOf(id: "north-one") { secret } secretLength(id: "north-one") }', auditor)).data).toEqual({
    noteOf: { secret: 'none' },
    secretLength: 4,
  });
});

test('what clients send as arguments is refused as in generated fields', async () => {
  const { errors } = await ask('{ myNotes(where: { text: { eq: null } }) { totalCount } }', north);
  expect(errors?.[0]).toMatchObject({ extensions: { code: 'BAD_USER_INPUT' } });
  expect((await ask('{ myNotes(first: 5000) { nodes { text } } }', north)).errors?.[0]?.message).toContain(
    'a page has at most 1000 rows',
  );
});

test('all reads of an operation see one state of the database', async () => {
  const { data: alone } = await ask('{ counts }', north);
  const [before = 0, after] = alone?.counts as number[];
  expect(after).toBe(before);
  const { data } = await ask('{ counts myNotes { totalCount } }', north);
  expect(data).toEqual({ counts: [before + 1, before + 1], myNotes: { totalCount: before + 1 } });
});

test('a mutation returns the row with what it wrote', async () => {
  const query = 'mutation { writeTwice(id: "north-bob", tenant: "north") { notes latest { noteId } } }';
  expect(await ask(query, north)).toEqual({
    data: { writeTwice: { notes: 2, latest: { noteId: 'north-bob-2' } } },
  });
  // The access of the command holds, too.
  const foreign = await ask('mutation { writeTwice(id: "south-bob", tenant: "south") { notes } }', north);
  expect(foreign.errors?.[0]).toMatchObject({
    message: "You may not run 'writeNote'.",
    extensions: { code: 'FORBIDDEN' },
  });
});

test("in a payload's query, a field reads what the command wrote", async () => {
  const input = '{ noteId: "north-carl-1", tenantId: "north", authorId: "north-carl", text: "now" }';
  const query = `mutation { writeNote(input: ${input}) { query { noteOf(id: "north-carl-1") { text author { latest { text } } } } } }`;
  expect((await ask(query, north)).data).toEqual({
    writeNote: { query: { noteOf: { text: 'now', author: { latest: { text: 'now' } } } } },
  });
});

test('a subscription of the application reads rows, and one to a read model does not follow its fields', async () => {
  const authorization = `Bearer ${await token(north)}`;
  const client = createClient({ url: `${refold.url}/graphql`, headers: { authorization }, retryAttempts: 0 });
  const first = async (query: string) => (await client.iterate({ query }).next()).value;
  expect(await first('subscription { noteTicks(id: "north-one") { text author { latest { tenantId } } } }')).toEqual({
    data: { noteTicks: { text: 'one', author: { latest: { tenantId: 'north' } } } },
  });
  expect(await first('subscription { noteTicks(id: "south-one") { text } }')).toEqual({ data: { noteTicks: null } });
  const refused = await first('subscription { author(authorId: "north-author") { notes latest { text } } }');
  expect(refused?.errors?.[0]).toMatchObject({
    message:
      "A subscription can't select 'latest' of Author: it would not notice when note changes. Query it, or subscribe to note as well.",
    extensions: { code: 'BAD_USER_INPUT' },
  });
  client.dispose();
});

test('plugins and the context of the application are used, also for generated fields that a plugin wraps', async () => {
  expect((await ask('{ hello }')).data).toEqual({ hello: 'hello (to all) to all' });
  expect((await ask('{ hello }', north)).data).toEqual({ hello: 'hello (to ada) to ada' });
  expect((await refold.graphql('{ hello }')).data).toEqual({ hello: 'hello (from here) from here' });
  expect((await ask('{ board(board: "all") { board } }', north)).data).toEqual({ board: { board: 'all to ada' } });
});

test.each(composers)('%s composes the subgraph with the fields of the application', async (_, compose) => {
  const { data } = await ask('{ _service { sdl } }', north);
  const { sdl } = (data as { _service: { sdl: string } })._service; // as selected
  const { errors, publicSdl } = compose([{ name: 'notes', url: 'http://notes', typeDefs: parse(sdl) }]);
  expect(errors).toEqual([]);
  expect(publicSdl).toContain('myNotes(');
  const query =
    '{ _entities(representations: [{ __typename: "Author", authorId: "north-author" }]) { ... on Author { latest { tenantId } } } }';
  expect((await ask(query, north)).data).toEqual({ _entities: [{ latest: { tenantId: 'north' } }] });
});
