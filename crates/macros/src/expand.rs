//! From an async function to one that returns a job.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, FnArg, Ident, ItemFn, MetaNameValue, Token};

/// The methods of a job that can be written as a setting.
const SETTINGS: [&str; 28] = [
    "cron",
    "time_zone",
    "shards",
    "shard_parameters",
    "parameter",
    "failover",
    "misfire",
    "monitor_execution",
    "strategy",
    "error_handlers",
    "description",
    "disabled",
    "overwrite",
    "label",
    "static_sharding",
    "class_name",
    "pool",
    "listener",
    "listeners",
    "once_listener",
    "time_limit",
    "retries",
    "start_jitter",
    "every",
    "delay",
    "valid_from",
    "valid_until",
    "catch_up",
];

pub(crate) fn job(settings: TokenStream, function: TokenStream) -> Result<TokenStream, Error> {
    let mut function: ItemFn = syn::parse2(function)?;
    check(&function)?;
    let settings = Punctuated::<MetaNameValue, Token![,]>::parse_terminated.parse2(settings)?;
    let mut seen: Vec<String> = Vec::new();
    let mut methods: Vec<(Ident, Expr)> = Vec::new();
    let name = function.sig.ident.to_string().trim_start_matches("r#").replace('_', "-");
    let mut name: Expr = syn::parse_quote!(#name);
    for MetaNameValue { path, value, .. } in settings {
        let key = path.require_ident()?.clone();
        let text = key.to_string();
        if seen.contains(&text) {
            return Err(Error::new(key.span(), format!("`{text}` is written twice: keep one of them")));
        }
        match text.as_str() {
            "name" => name = value,
            known if SETTINGS.contains(&known) => methods.push((key, value)),
            _ => {
                let known = SETTINGS.join(", ");
                let said = format!("`{text}` is no setting of a job: known are name, {known}");
                return Err(Error::new(key.span(), said));
            }
        }
        seen.push(text);
    }
    // What documents the job belongs to what others call; the rest is about the code.
    let is_doc = |it: &Attribute| it.path().is_ident("doc");
    let (docs, rest) = function.attrs.drain(..).partition(is_doc);
    let docs: Vec<Attribute> = docs;
    function.attrs = rest;
    let visibility = std::mem::replace(&mut function.vis, syn::Visibility::Inherited);
    let ident = &function.sig.ident;
    let (keys, values): (Vec<Ident>, Vec<Expr>) = methods.into_iter().unzip();
    Ok(quote! {
        #(#docs)*
        #visibility fn #ident() -> ::elasticjob::Job {
            #function
            ::elasticjob::Job::simple(#name, #ident) #(.#keys(#values))*
        }
    })
}

fn check(function: &ItemFn) -> Result<(), Error> {
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        return Err(Error::new(signature.fn_token.span, "a job is an async function: write `async fn`"));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new(signature.generics.span(), "a job has no generic parameters: name the types"));
    }
    match signature.inputs.first() {
        Some(FnArg::Typed(_)) if signature.inputs.len() == 1 => Ok(()),
        Some(FnArg::Receiver(it)) => {
            Err(Error::new(it.span(), "a job is a function of its own: take no `self`"))
        }
        _ => Err(Error::new(
            signature.paren_token.span.join(),
            "a job takes its shard and nothing else: write `(shard: Shard)`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(settings: TokenStream, function: TokenStream) -> String {
        job(settings, function).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_said() {
        let fine = quote!(
            async fn settle(shard: Shard) -> Result<(), JobError> {
                Ok(())
            }
        );
        assert_eq!(
            said(quote!(cron = "a", cron = "b"), fine.clone()),
            "`cron` is written twice: keep one of them"
        );
        let unknown = said(quote!(shard = 3), fine.clone());
        assert!(unknown.starts_with("`shard` is no setting of a job: known are name, cron, "), "{unknown}");
        assert_eq!(said(quote!("0 0 2 * * ?"), fine), "expected identifier");
        for (function, expected) in [
            (
                quote!(
                    fn f(s: Shard) {}
                ),
                "a job is an async function: write `async fn`",
            ),
            (
                quote!(
                    async fn f() {}
                ),
                "a job takes its shard and nothing else: write `(shard: Shard)`",
            ),
            (
                quote!(
                    async fn f(a: A, b: B) {}
                ),
                "a job takes its shard and nothing else: write `(shard: Shard)`",
            ),
            (
                quote!(
                    async fn f(&self) {}
                ),
                "a job is a function of its own: take no `self`",
            ),
            (
                quote!(
                    async fn f<T>(s: T) {}
                ),
                "a job has no generic parameters: name the types",
            ),
        ] {
            assert_eq!(said(quote!(), function), expected);
        }
    }

    #[test]
    fn the_function_returns_the_job_and_keeps_its_documentation() {
        let function = quote! {
            /// Settles.
            #[expect(unused)]
            pub(crate) async fn settle_orders(shard: Shard) -> Result<(), JobError> { Ok(()) }
        };
        let expanded = job(quote!(name = NAME, cron = "* * * * * ?", shards = 1 + 2), function).unwrap();
        let expected = quote! {
            /// Settles.
            pub(crate) fn settle_orders() -> ::elasticjob::Job {
                #[expect(unused)]
                async fn settle_orders(shard: Shard) -> Result<(), JobError> { Ok(()) }
                ::elasticjob::Job::simple(NAME, settle_orders).cron("* * * * * ?").shards(1 + 2)
            }
        };
        assert_eq!(expanded.to_string(), expected.to_string());
    }
}
