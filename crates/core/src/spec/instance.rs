//! The document that an instance leaves in the registry while it lives.

use super::{SpecError, yaml::flat};

/// What `instances/{id}` says.
///
/// ```
/// use elasticjob_core::spec::InstanceDoc;
///
/// let doc = InstanceDoc::new("192.168.1.5@-@12345", "192.168.1.5");
/// assert_eq!(doc.to_yaml(), "jobInstanceId: 192.168.1.5@-@12345\nserverIp: 192.168.1.5\n");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceDoc {
    /// Id of the instance, `ip@-@process`; instances are equal if their ids are.
    pub job_instance_id: String,
    /// Address under which the server is known. Java takes its own address if this is missing.
    pub server_ip: Option<String>,
    /// For people; Java never sets it.
    pub labels: Option<String>,
}

impl InstanceDoc {
    /// A document without labels.
    ///
    /// ```
    /// let doc = elasticjob_core::spec::InstanceDoc::new("10.0.0.9@-@1", "10.0.0.9");
    /// assert_eq!(doc.labels, None);
    /// ```
    #[must_use]
    pub fn new(job_instance_id: impl Into<String>, server_ip: impl Into<String>) -> InstanceDoc {
        InstanceDoc {
            job_instance_id: job_instance_id.into(),
            server_ip: Some(server_ip.into()),
            labels: None,
        }
    }

    /// The document as Java writes it.
    ///
    /// ```
    /// let mut doc = elasticjob_core::spec::InstanceDoc::new("10.0.0.9@-@1", "10.0.0.9");
    /// doc.labels = Some("blue".into());
    /// assert_eq!(doc.to_yaml(), "jobInstanceId: 10.0.0.9@-@1\nlabels: blue\nserverIp: 10.0.0.9\n");
    /// ```
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let entries = [
            ("jobInstanceId", Some(&self.job_instance_id)),
            ("labels", self.labels.as_ref()),
            ("serverIp", self.server_ip.as_ref()),
        ];
        flat::write(entries.into_iter().filter_map(|(key, value)| Some((key, value?.as_str()))))
    }

    /// Reads a document in block or flow style. Unknown keys are ignored, because an instance's document is rewritten by nobody else.
    ///
    /// ```
    /// use elasticjob_core::spec::InstanceDoc;
    ///
    /// let doc = InstanceDoc::from_yaml("{jobInstanceId: 10.0.0.9@-@1}")?;
    /// assert_eq!(doc.server_ip, None);
    /// # Ok::<(), elasticjob_core::spec::SpecError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Where the text stops being YAML, or that the id is missing.
    pub fn from_yaml(text: &str) -> Result<InstanceDoc, SpecError> {
        let mut found = flat::read(text)?;
        let job_instance_id =
            found.remove("jobInstanceId").filter(|id| !id.is_empty()).ok_or(SpecError::Missing {
                field: "jobInstanceId",
                remedy: "write the name of the instance's node",
            })?;
        Ok(InstanceDoc {
            job_instance_id,
            server_ip: found.remove("serverIp"),
            labels: found.remove("labels"),
        })
    }
}
