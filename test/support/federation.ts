import { composeServices as composeByApollo } from '@apollo/composition';
import { composeServices as composeByGuild } from '@theguild/federation-composition';
import { type DocumentNode, print } from 'graphql';

export interface Subgraph {
  readonly name: string;
  readonly url: string;
  readonly typeDefs: DocumentNode;
}

export interface Composition {
  readonly errors: readonly string[];
  readonly supergraphSdl: string;
  /** The schema that clients of a gateway see. */
  readonly publicSdl: string;
}

type Compose = (subgraphs: readonly Subgraph[]) => Composition;

/** The compositions of Apollo Federation that gateways use. */
export const composers: readonly (readonly [name: string, compose: Compose])[] = [
  [
    '@apollo/composition',
    (subgraphs) => {
      const { errors = [], supergraphSdl = '', schema } = composeByApollo([...subgraphs]);
      const publicSdl = schema ? print(schema.toAPISchema().toAST()) : '';
      return { errors: errors.map(({ message }) => message), supergraphSdl, publicSdl };
    },
  ],
  [
    '@theguild/federation-composition',
    (subgraphs) => {
      const { errors = [], supergraphSdl = '', publicSdl = '' } = composeByGuild([...subgraphs]);
      return { errors: errors.map(({ message }) => message), supergraphSdl, publicSdl };
    },
  ],
];
