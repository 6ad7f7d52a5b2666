import { renderGraphiQL } from '@graphql-yoga/render-graphiql';
import type { GraphiQLOptions, YogaServerOptions } from 'graphql-yoga';

/** GraphiQL at the GraphQL endpoint, whole from the package: it works without a network. */
export function graphiqlOptions(
  enabled: boolean,
  defaultQuery: string | undefined,
): Pick<YogaServerOptions<object, object>, 'graphiql' | 'renderGraphiQL'> {
  if (!enabled) return { graphiql: false };
  const options: GraphiQLOptions = {
    title: 'Refold',
    subscriptionsProtocol: 'WS',
    ...(defaultQuery === undefined ? {} : { defaultQuery }),
  };
  let page: string | undefined;
  return {
    graphiql: options,
    renderGraphiQL(given) {
      page ??= renderGraphiQL(given);
      return page;
    },
  };
}
