import { getIntrospectionQuery } from 'graphql';
import { describe, expect, test } from 'vitest';
import { startGateway } from '../gateway-under-test.ts';

describe('a document is refused that is', () => {
  const aliases = Array.from({ length: 31 }, (_, index) => `a${index}: pieces`).join(' ');
  test.each([
    [
      'too deep',
      '{ parcels { edges { node { size { label { text } } } } } }',
      'Query depth limit of 5 exceeded, found 6.',
    ],
    [
      'too deep through fragments',
      '{ parcels { edges { node { ...Size } } } } fragment Size on Parcel { size { ...Label } } fragment Label on ParcelSize { label { text } }',
      'Query depth limit of 5 exceeded, found 6.',
    ],
    ['too repetitive', `{ parcel(parcelId: "a") { ${aliases} } }`, 'Aliases limit of 30 exceeded, found 31.'],
    ['too long', `{ parcel(parcelId: "a") { ${'pieces '.repeat(500)} } }`, 'Token limit of 300 exceeded.'],
    [
      'full of directives',
      `{ parcel(parcelId: "a") { ${'pieces @skip(if: true) '.repeat(51)} } }`,
      'Directives limit of 50 exceeded, found 51.',
    ],
  ])('%s', async (_, query, message) => {
    const maxTokens = query.includes('@skip') ? 2000 : 300;
    const { post, services } = await startGateway({ options: { maxDepth: 5, maxTokens } });
    for (const attempt of [1, 2]) {
      const answer = await post(query, {}, { accept: 'application/graphql-response+json' });
      expect(answer, `attempt ${attempt}`).toMatchObject({
        status: 400,
        errors: [{ message, extensions: { code: 'QUERY_TOO_COMPLEX' } }],
      });
    }
    expect(services.opened).toEqual([]);
  });
});

describe('a request that another site could send for a visitor', () => {
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  const body = 'query=mutation+%7B+loseEverything+%7B+position+%7D+%7D';

  test.each<[string, Record<string, string>, string]>([
    ['a form', form, body],
    ['plain text', { 'content-type': 'text/plain' }, '{"query":"mutation { loseEverything { position } }"}'],
    ['no content type', {}, body],
  ])('is refused as %s', async (_, headers, body) => {
    const { endpoint, services } = await startGateway();
    const response = await fetch(endpoint, { method: 'POST', headers, body: new TextEncoder().encode(body) });
    expect(response.status).toBe(403);
    expect(services.executed).toEqual([]);
  });

  test('is accepted with a header that forces a preflight request', async () => {
    const { endpoint } = await startGateway();
    const response = await fetch(endpoint, { method: 'POST', headers: { ...form, 'refold-csrf': '1' }, body });
    expect(await response.json()).toEqual({
      data: { loseEverything: { position: expect.stringMatching(/^1(\.0{7}1)?$/) } },
    });
  });

  test('is refused as a GET that the browser marks as cross-site', async () => {
    const { endpoint } = await startGateway();
    const url = `${endpoint}?query=%7B__typename%7D`;
    const status = async (site: string) => (await fetch(url, { headers: { 'sec-fetch-site': site } })).status;
    expect([await status('same-origin'), await status('none')]).toEqual([200, 200]);
    expect([await status('cross-site'), await status('same-site')]).toEqual([403, 403]);
  });
});

describe('in production', () => {
  test('the schema is hidden: no introspection, no hints, no GraphiQL', async () => {
    const { endpoint, post } = await startGateway();
    const { errors } = await post('{ __schema { types { name } } }');
    expect(errors?.[0]).toMatchObject({
      message: expect.stringContaining('GraphQL introspection has been disabled'),
      extensions: { code: 'GRAPHQL_VALIDATION_FAILED' },
    });
    const wrong = await post('{ parcel(parcelId: "a") { weigth } }');
    expect(wrong.errors?.map(({ message }) => message)).toEqual(['Cannot query field "weigth" on type "Parcel".']);
    const page = await fetch(endpoint, { headers: { accept: 'text/html' } });
    expect(page.headers.get('content-type') ?? '').not.toContain('text/html');
  });

  test('both can be switched on', async () => {
    const { post } = await startGateway({ options: { graphiql: true } });
    expect((await post(getIntrospectionQuery())).errors).toBeUndefined();
  });
});

describe('in development', () => {
  test('GraphiQL is served completely, and loads nothing from other hosts', async () => {
    const defaultQuery = '{ parcels { totalCount } }';
    const { endpoint } = await startGateway({ development: true, defaultQuery });
    const response = await fetch(endpoint, { headers: { accept: 'text/html,*/*' } });
    expect(response.headers.get('content-type')).toContain('text/html');
    const page = await response.text();
    expect(page).toContain(defaultQuery);
    const elsewhere =
      /(?:<(?:script|img|iframe)[^>]*\ssrc|<link[^>]*\shref)\s*=\s*["']?(?:https?:)?\/\/|url\(\s*["']?(?:https?:)?\/\/|@import/i;
    expect(elsewhere.exec(page)?.[0]).toBeUndefined();
  });

  test('introspection works, in spite of the limit on depth', async () => {
    const { post } = await startGateway({ development: true, options: { maxDepth: 3 } });
    expect((await post(getIntrospectionQuery())).errors).toBeUndefined();
    const wrong = await post('{ parcel(parcelId: "a") { weigth } }');
    expect(wrong.errors?.[0]?.message).toContain('Did you mean "weight"?');
  });
});
