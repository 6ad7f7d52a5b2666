import type { Refold } from '../../refold.ts';

/** The message for a user whose application has just started. */
export function announcement(
  { url, healthUrl, databaseUrl }: Refold,
  { graphiql, adminPath }: { readonly graphiql: boolean; readonly adminPath: string | undefined },
): string {
  const database = `  database      ${databaseUrl.replace(/\/\/([^:@/]+):[^@]*@/, '//$1:…@')}`;
  const health = [`  health        ${url ?? healthUrl}/health/ready`, `  metrics       ${url ?? healthUrl}/metrics`];
  if (!url) return ['Refold maintains the read models.', ...(healthUrl ? health : []), database].join('\n');
  return [
    'Refold is running.',
    `  GraphQL       ${url}/graphql`,
    ...(graphiql ? [`  GraphiQL      ${url}/graphql (in a browser)`] : []),
    ...(adminPath === undefined ? [] : [`  admin         ${url}${adminPath}`]),
    `  WebSocket     ${url.replace(/^http/, 'ws')}/graphql`,
    ...health,
    database,
  ].join('\n');
}
